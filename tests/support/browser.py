"""A real browser, and what must be true of every page in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest


def browser_missing() -> str:
    """Why there can be no browser here, or nothing. Tests that are left out for it are told of after the run."""
    return "" if _chromium() else "CHROMIUM IS NOT INSTALLED: no page was tried in a browser"


def need_browser() -> None:
    """Leave the test out where there is no browser; in CI that is a failure, because nobody would notice."""
    if missing := browser_missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


_DISABLED = (
    # The suggestions of the address bar: two pages with scripts in every window, which no test ever sees.
    *("WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup"),
    # A process that is started in case the next page is of another site.
    "SpareRendererForSitePerProcess",
    # What Playwright switches off. Chromium heeds only the last list of features, so this one repeats them.
    *("AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose"),
    *("HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying"),
    *("OptimizationHints", "PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning", "AimEnabled"),
)
"""Features of Chromium that tests have no use for. They would take a third of its time."""


@contextmanager
def launched() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", f"--disable-features={','.join(_DISABLED)}"]
        browser = playwright.chromium.launch(executable_path=_chromium(), args=options)
        yield browser
        browser.close()


SCHEMES = [("light", ()), ("dark", ("color-contrast",))]
"""What must be looked at in each: in the dark only colours are others."""


_SHIFT = """() => new Promise(done => {
    let total = 0;
    const add = list => list.forEach(entry => { if (!entry.hadRecentInput) total += entry.value; });
    const observer = new PerformanceObserver(list => add(list.getEntries()));
    observer.observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
        add(observer.takeRecords());
        done(total);
    })));
})"""


class Watched:
    """A tab in which nothing bad goes unseen: `check` fails for errors in the console and requests to other hosts."""

    def __init__(self, browser: Any, url: str, link: str, **options: Any) -> None:
        self.url, self.troubles = url, list[str]()
        self._emulation: Any = None
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", self._note_trouble)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._sent)
        self.page.goto(link)

    def _note_trouble(self, message: Any) -> None:
        # A refused form answers with 400, which the browser notes: that is no error of the page.
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.troubles.append(f"console: {message.text}")

    def _asked(self, dialog: Any) -> None:
        self.troubles.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def _sent(self, request: Any) -> None:
        if urlsplit(request.url).netloc not in (urlsplit(self.url).netloc, ""):
            self.troubles.append(f"asked another host: {request.url}")

    def go(self, path: str) -> Any:
        answer = self.page.goto(self.url + path)
        self.page.wait_for_selector(".htmx-request", state="detached")  # what comes after the page
        return answer

    def check(self) -> None:
        assert not self.troubles, self.troubles

    def violations(self, *rules: str) -> list[str]:
        """What axe finds, in words; by some of its rules or by all of them."""
        if not self.page.evaluate("'axe' in window"):  # loading its half a megabyte takes longer than most checks
            self.page.evaluate(_axe())
        asked: dict[str, Any] = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
        violations = self.page.evaluate("asked => axe.run(asked).then(r => r.violations)", asked)
        return [f"{violation['id']}: {node['html'][:200]}" for violation in violations for node in violation["nodes"]]

    def violations_in_all_schemes(self) -> list[str]:
        """What axe finds in the light and in the dark, without loading the page again."""
        violations = list[str]()
        for scheme, rules in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            violations += [f"{scheme}: {violation}" for violation in self.violations(*rules)]
        self.page.emulate_media(color_scheme="light")
        return violations

    def too_wide(self) -> int:
        """Pixels by which the page must be scrolled sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def widths_too_small(self, widths: tuple[int, ...] = (360, 2560)) -> list[int]:
        """The widths of a window in which the page must be scrolled sideways."""
        too_small = [width for width in widths if self._too_wide_at({"width": width, "height": 800})]
        self._too_wide_at(self.page.viewport_size)
        return too_small

    def _too_wide_at(self, size: dict[str, int]) -> bool:
        """Whether the page must be scrolled sideways in a window of this size.

        `page.set_viewport_size` would draw the window with its address bar anew as well, which takes longer.
        """
        if self._emulation is None:  # ends with the tab: when it is closed, Chromium forgets the size
            self._emulation = self.context.new_cdp_session(self.page)
        self._emulation.send("Emulation.setDeviceMetricsOverride", size | {"deviceScaleFactor": 1, "mobile": False})
        assert self.page.evaluate("window.innerWidth") >= size["width"]
        return self.too_wide() > 0

    def shift(self) -> float:
        """How far parts of the page have moved while it loaded, once two frames have been drawn after that."""
        return self.page.evaluate(_SHIFT)


def _axe() -> str:
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8")
