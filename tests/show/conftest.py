"""A real browser for the tests of the page, one for each file of them: Chromium, or GRADWALK_BROWSER=firefox."""

from __future__ import annotations

import os
from collections.abc import Iterator

import chromium
import firefox
import pytest

STARTED = {"chromium": chromium.started, "firefox": firefox.started}


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    with STARTED[os.environ.get("GRADWALK_BROWSER", "chromium")]() as running:
        yield running


@pytest.fixture
def tab(browser: chromium.Browser) -> Iterator[chromium.Tab]:
    """A page of the usual size, on which nothing goes wrong."""
    opened = browser.open(width=1280, height=720)
    yield opened
    assert opened.errors == []
    opened.close()
