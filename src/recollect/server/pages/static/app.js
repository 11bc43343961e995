// The little that HTML cannot do by itself.
(function () {
  "use strict";
  document.addEventListener("click", function (event) {
    var close = event.target.closest("[data-close]");
    if (close) { close.closest("[data-toast], dialog, [data-closable]").remove(); }
    var open = event.target.closest("[data-open]");
    if (open) { document.getElementById(open.getAttribute("data-open")).showModal(); }
    var cancel = event.target.closest("[data-cancel]");
    if (cancel) { cancel.closest("dialog").close(); }
    var copy = event.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      navigator.clipboard.writeText(document.getElementById(copy.getAttribute("data-copy")).textContent.trim());
      copy.textContent = "Copied";
    }
  });
  // A dangerous form is sent only when its word was typed.
  document.addEventListener("input", function (event) {
    var typed = event.target.closest("[data-type-to-confirm]");
    if (typed) {
      typed.form.querySelectorAll("[data-dangerous]").forEach(function (one) {
        // One that names its own word is sent by that word only.
        one.disabled = typed.value !== (one.getAttribute("data-dangerous") || typed.getAttribute("data-type-to-confirm"));
      });
    }
    var all = event.target.closest("[data-check-all]");
    if (all) {
      document.querySelectorAll("input[name='" + all.getAttribute("data-check-all") + "']").forEach(function (one) { one.checked = all.checked; });
    }
  });
  // An address is to be sent to a colleague: what was left empty is no part of it.
  document.addEventListener("htmx:config:request", function (event) {
    var asked = event.detail.ctx.request;
    if (asked.method === "GET" && asked.body) {
      Array.from(asked.body.entries()).forEach(function (pair) { if (pair[1] === "") { asked.body.delete(pair[0]); } });
    }
  });
  // On a wide screen the menu is always there.
  var wide = window.matchMedia("(min-width: 60rem)");
  function arrange() {
    document.querySelectorAll("[data-menu]").forEach(function (menu) { menu.open = wide.matches; });
  }
  wide.addEventListener("change", arrange);
  document.addEventListener("DOMContentLoaded", arrange);
  arrange();
})();
