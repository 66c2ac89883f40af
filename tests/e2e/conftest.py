"""A real Chromium against the site with its own catalog; every page is watched for script and policy faults."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from catalog.services import load_catalog

OpenPage = Callable[..., Page]
BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def site(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The address of a running site with the project's catalog; the database is emptied after the module."""
    patch = pytest.MonkeyPatch()
    # Playwright's event loop lives in this thread, and Django would refuse every query made beside it.
    patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with django_db_blocker.unblock():
        load_catalog()
        server = LiveServer("127.0.0.1")
        yield server.url
        server.stop()
        call_command("flush", interactive=False, verbosity=0)
    patch.undo()


@pytest.fixture(scope="module")
def browser(site: str) -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "the browser tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser, site: str) -> Iterator[OpenPage]:
    """Opens a path in a context of its own; afterwards no page may have logged a fault."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_(path: str, *, width: int = 1280, height: int = 900, theme: str = "light", scripts: bool = True) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: _note(message, faults))
        page.goto(f"{site}{path}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


def _note(message: ConsoleMessage, faults: list[str]) -> None:
    """Errors and policy violations; the browser's own line about a 4xx answer is none of ours."""
    if message.type in ("error", "warning") and "responded with a status of 4" not in message.text:
        faults.append(message.text)
