"""A site on loopback whose every byte a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.handler.widget.scripted_site import Site

# visit(path, name="Ada", **context options): a new visitor's tab. `name=None` was never asked for it.
Visit = Callable[..., Page]


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
