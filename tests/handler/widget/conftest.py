"""A real browser, and a site on loopback whose every byte a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.handler.widget.scripted_site import Site

CHROMIUM = Path("/usr/bin/chromium")

# visit(path, name="Ada", **context options): a new visitor's tab. `name=None` was never asked for it.
Visit = Callable[..., Page]


# A module's and not the session's: as long as it runs, Playwright's event loop counts as running in this
# thread, and asyncio.run in other tests would refuse.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def _site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def site(_site: Site) -> Site:
    """The site, with nothing but the widget on it."""
    _site.reset()
    return _site


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """Opens tabs, and fails the test when one of them saw an uncaught error."""
    contexts = []
    errors: list[str] = []

    def visit(path: str = "/", name: str | None = "Ada", **options: object) -> Page:
        context = browser.new_context(**{"reduced_motion": "reduce", "base_url": site.url, **options})  # type: ignore[arg-type]
        context.set_default_timeout(10_000)
        contexts.append(context)
        if name is not None:
            context.add_cookies([{"name": "dawask_name", "value": name, "url": site.url}])
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []
