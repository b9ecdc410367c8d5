"""The engines under test. A missing native engine fails the suite; it is never skipped."""

from __future__ import annotations

import gc
import signal
from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import gradwalk.engine
from gradwalk import composites

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background; what a test starts inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thin", type=int, metavar="N", help="of each test at most N of its cases, spread over all of them"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """--thin: which lines the suite reaches hardly depends on the number of cases, and how long that takes does."""
    if (most := config.getoption("thin")) is None:
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {id(of_one[i * len(of_one) // most]) for of_one in cases.values() for i in range(most)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def pytest_collection_finish() -> None:
    """Tests stay to the end: looked through at every collection of garbage, they took half of the suite's time."""
    gc.collect()
    gc.freeze()
