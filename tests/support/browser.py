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


@contextmanager
def launched() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


SCHEMES = [("light", ()), ("dark", ("color-contrast",))]
"""What must be looked at in each: in the dark only colours are others."""


class Watched:
    """A tab in which nothing bad goes unseen: `check` fails for errors in the console and requests to other hosts."""

    def __init__(self, browser: Any, url: str, link: str, **options: Any) -> None:
        self.url, self.troubles = url, list[str]()
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._sent)
        self.page.goto(link)

    def _said(self, message: Any) -> None:
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
        self.page.evaluate(_axe())
        asked: dict[str, Any] = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
        found = self.page.evaluate("asked => axe.run(asked).then(r => r.violations)", asked)
        return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]

    def too_wide(self) -> int:
        """Pixels by which the page must be scrolled sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def _axe() -> str:
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8")
