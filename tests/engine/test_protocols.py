"""Identity and order."""

from __future__ import annotations

import math
from typing import Any

# ---------------------------------------------------------------- identity


def test_values_live_in_sets_and_dicts(engine: Any) -> None:
    """Each is one key, whatever its number, and stays findable when its number changes."""
    values = [engine.Value(1.0) for _ in range(100)]
    places = {value: i for i, value in enumerate(values)}
    for value in values:
        value.data = 7.0
    assert [places[value] for value in values] == list(range(100))
    assert len(set(values + values)) == 100
    assert engine.Value(7.0) not in places


def test_hash_is_stable(engine: Any) -> None:
    """The hash does not change when a label, a gradient or a _backward moves the node to another layout."""
    x = engine.Value(2.0)
    y = x * 3
    before = hash(x), hash(y)
    x.label, y.label = "x", "y"
    y._backward = lambda: None
    x.grad = engine.Value(1.0)
    assert (hash(x), hash(y)) == before


def test_comparisons_compare_data(engine: Any) -> None:
    """<, <=, >, >= between Values, and with numbers on either side."""
    one, two, other = engine.Value(1.0), engine.Value(2.0), engine.Value(1.0)
    assert [one < two, one <= two, one > two, one >= two] == [True, True, False, False]
    assert [one < other, one <= other, one > other, one >= other] == [False, True, False, True]
    assert [one < 2, one <= 1.0, one > 2, one >= 0] == [True, True, False, True]
    assert [2 > one, 0 >= one, True <= one] == [True, False, True]  # noqa: SIM300


def test_comparisons_with_nan_are_false(engine: Any) -> None:
    """As for floats."""
    x, nan = engine.Value(1.0), engine.Value(math.nan)
    assert not any([x < nan, x <= nan, x > nan, x >= nan, nan < 1.0, nan >= nan])


def test_comparisons_give_bools(engine: Any) -> None:
    """A comparison is a plain bool, so that max, min and sorted work."""
    values = [engine.Value(d) for d in (2.0, -1.0, 3.0)]
    assert type(values[0] < values[1]) is bool
    assert (max(values) is values[2], min(values) is values[1]) == (True, True)
    assert [value.data for value in sorted(values)] == [-1.0, 2.0, 3.0]
