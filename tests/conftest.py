"""The engines under test. A missing native engine fails the suite; it is never skipped."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import gradwalk.engine
from gradwalk import composites


@dataclass(frozen=True)
class Engine:
    """One engine: its Value, the table's operations as functions, and the composites."""

    name: str
    Value: Any
    functions: SimpleNamespace
    composites: SimpleNamespace


def _loaded(name: str) -> Engine:
    module = gradwalk.engine.load(name)
    return Engine(name, module.Value, SimpleNamespace(**module.FUNCTIONS), composites.for_engine(name))


@pytest.fixture(scope="session", params=("reference", "native"))
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return _loaded(request.param)


@pytest.fixture(scope="session")
def reference() -> Engine:
    return _loaded("reference")


@pytest.fixture(scope="session")
def native() -> Engine:
    return _loaded("native")
