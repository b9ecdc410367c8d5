"""A real browser for the tests of the page, one for each file of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import Browser, started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as running:
        yield running
