"""The generated ops.js, run in V8, against the rows of the table in Python."""

from __future__ import annotations

import json
import math
import random
import re
import struct
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from py_mini_racer import MiniRacer

from gradwalk.operation import Op
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES, Composite

PAGE = Path(__file__).resolve().parents[2] / "src" / "gradwalk" / "show" / "page"

# what IEEE arithmetic fixes to the bit; the rest goes through a libm, and V8 has another one than Python
EXACT = {op.name for op in OPS.values() if op.exact}
# where a forward or a local gradient crosses zero, the size of what cancels there decides, not the result's
CANCELLING = {"gelu": 1e-15, "silu": 1e-15, "lgamma": 1e-13}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan, 5e-324, -1e-310, 1e308, -1e308)

# numbers travel as 16 hexadecimal digits, because JSON has no inf, nan or -0
DRIVER = """
const bits = new DataView(new ArrayBuffer(8));
function decode(digits) {
  bits.setBigUint64(0, BigInt("0x" + digits));
  return bits.getFloat64(0);
}
function encode(number) {
  bits.setFloat64(0, number);
  return bits.getBigUint64(0).toString(16).padStart(16, "0");
}
function evaluate(name, points) {
  const op = OPS[name];
  return JSON.stringify(points.map((point) => {
    const [out, ...numbers] = point.map(decode);
    return [op.domain(...numbers), encode(op.forward(...numbers)), op.localGrads(...numbers, out).map(encode)];
  }));
}
function evaluateRow(name, rows) {
  const row = COMPOSITES[name];
  return JSON.stringify(rows.map(({ xs, given }) => {
    const numbers = xs.map(decode);
    const out = row.forward(numbers, ...given);
    return [encode(out), row.localGrads(numbers, ...given, out).map(encode)];
  }));
}
function special(name, points) {
  const functions = { copysign, erf, erfc };
  return JSON.stringify(points.map((point) => encode(functions[name](...point.map(decode)))));
}
"""


def as_script(name: str) -> str:
    """A module's text as a plain script: V8 without a page has no loader for modules."""
    text = (PAGE / name).read_text(encoding="utf-8")
    without_imports = re.sub(r"^import .*;$", "", text, flags=re.MULTILINE)
    return re.sub(r"^export ", "", without_imports, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        for text in (*map(as_script, ("special.js", "formulas.js", "ops.js", "composites.js")), DRIVER):
            context.eval(text)
        yield context


def encode(number: float) -> str:
    return struct.pack(">d", number).hex()


def decode(digits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(digits))[0]


def same_bits(expected: float, actual: float) -> bool:
    return encode(expected) == encode(actual) or (math.isnan(expected) and math.isnan(actual))


def close(expected: float, actual: float, absolute: float) -> bool:
    # 2e-323: four times the smallest number, which is all a subnormal result can promise
    return same_bits(expected, actual) or math.isclose(expected, actual, rel_tol=1e-12, abs_tol=max(absolute, 2e-323))


def random_number(source: random.Random) -> float:
    kind = source.random()
    if kind < 0.4:
        return source.uniform(-10.0, 10.0)
    if kind < 0.6:
        return source.uniform(-1.0, 1.0)
    if kind < 0.7:
        return float(source.randint(-9, 9))
    exponent = source.uniform(-3.0, 3.0) if kind < 0.9 else source.uniform(-300.0, 300.0)
    return math.copysign(10.0**exponent, source.random() - 0.5)


def points(op: Op) -> list[tuple[float, ...]]:
    source = random.Random(op.name)
    samples = [sample if isinstance(sample, tuple) else (sample,) for sample in op.samples]
    special = list(product(SPECIAL, repeat=len(op.names)))
    return samples + special + [tuple(random_number(source) for _ in op.names) for _ in range(500)]


def evaluated(v8: MiniRacer, op: Op, at: list[tuple[float, ...]]) -> list[tuple[bool, float, list[float]]]:
    """What ops.js says at each point, its local gradients being given the `out` of the Python row."""
    encoded = [[encode(number) for number in (op.forward(*point), *point)] for point in at]
    answers = json.loads(v8.call("evaluate", op.name, encoded))
    return [(domain, decode(out), [decode(local) for local in locals_]) for domain, out, locals_ in answers]


def agreement(op: Op) -> Callable[[float, float], bool]:
    if op.name in EXACT:
        return same_bits
    return lambda expected, actual: close(expected, actual, CANCELLING.get(op.name, 0.0))


def test_every_row_is_there(v8: MiniRacer) -> None:
    """ops.js holds the operations of the table, in the table's order."""
    assert list(OPS) == json.loads(v8.eval("JSON.stringify(Object.keys(OPS))"))


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_domain(v8: MiniRacer, op: Op) -> None:
    """A point is in the domain of the JavaScript row exactly when it is in the domain of the Python row."""
    at = points(op)
    differing = [
        (point, actual)
        for point, (actual, _, _) in zip(at, evaluated(v8, op, at), strict=True)
        if bool(op.domain(*point)) is not actual
    ]
    assert differing == []


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_forward(v8: MiniRacer, op: Op) -> None:
    """The JavaScript forward gives the Python row's number: its bits, or to 1e-12 where a libm is involved."""
    at, agree = points(op), agreement(op)
    differing = [
        (point, op.forward(*point), actual)
        for point, (_, actual, _) in zip(at, evaluated(v8, op, at), strict=True)
        if not agree(op.forward(*point), actual)
    ]
    assert differing == []


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_local_grads(v8: MiniRacer, op: Op) -> None:
    """The JavaScript local gradients are the Python row's: their bits, or to 1e-12 where a libm is involved."""
    at, agree = points(op), agreement(op)
    differing = [
        (point, expected, actual)
        for point, (_, _, actual) in zip(at, evaluated(v8, op, at), strict=True)
        for expected in [op.local_grads(*point, op.forward(*point))]
        if not all(map(agree, expected, actual)) or len(expected) != len(actual)
    ]
    assert differing == []


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions(v8: MiniRacer, name: str) -> None:
    """special.js computes erf and erfc to a relative error of 2e-15 where the result is a normal number."""
    source = random.Random(name)
    at = [source.uniform(-6.0, 6.0) for _ in range(2000)] + [source.uniform(0.0, 26.5) for _ in range(2000)]
    at += [math.copysign(10.0 ** source.uniform(-307.0, 0.0), source.random() - 0.5) for _ in range(1000)]
    answers = json.loads(v8.call("special", name, [[encode(x)] for x in at]))
    # Python's own are good to 2 units in the last place
    differing = [
        (x, getattr(math, name)(x), decode(answer))
        for x, answer in zip(at, answers, strict=True)
        if not math.isclose(getattr(math, name)(x), decode(answer), rel_tol=2e-15)
    ]
    assert differing == []


@pytest.mark.parametrize("name", ["erf", "erfc"])
@pytest.mark.parametrize("x", [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 28.0, -28.0, 1e308, -1e308])
def test_error_functions_at_special_values(v8: MiniRacer, name: str, x: float) -> None:
    """At zeros, infinities, nan and far out, erf and erfc give the bits that Python gives."""
    (answer,) = json.loads(v8.call("special", name, [[encode(x)]]))
    assert same_bits(getattr(math, name)(x), decode(answer)), decode(answer)


def test_erfc_underflows_gradually(v8: MiniRacer) -> None:
    """Between 26.5 and 27.3 erfc is subnormal, within two units of the smallest number."""
    at = [26.5 + 0.001 * k for k in range(900)]
    answers = json.loads(v8.call("special", "erfc", [[encode(x)] for x in at]))
    worst = max(abs(math.erfc(x) - decode(answer)) for x, answer in zip(at, answers, strict=True) if x > 26.6)
    assert worst <= 1e-323


def test_copysign_sees_the_sign_of_zero(v8: MiniRacer) -> None:
    """copysign takes the sign of -0 and of infinities, and gives it to zeros too."""
    at = [(size, sign) for size in (0.0, -0.0, 2.0, math.inf) for sign in (0.0, -0.0, -math.inf, math.inf, -1e-310)]
    answers = json.loads(v8.call("special", "copysign", [[encode(x) for x in point] for point in at]))
    assert [encode(math.copysign(*point)) for point in at] == answers


@pytest.mark.parametrize("row", COMPOSITES.values(), ids=COMPOSITES)
def test_composites(v8: MiniRacer, row: Composite) -> None:
    """Values and local gradients, where the numbers are ordinary, equal, large, infinite and none."""
    lists = [[0.3, -1.2, 2.0, 0.7], [1.0, 1.0], [-0.0, 0.0], [1e200, -1e200], [800.0, 2.0, -800.0, 1.0]]
    lists += [[math.inf, 1.0], [-math.inf, -math.inf], [1.0, math.nan], [2.5, -1.0]]
    given = [*([1] if row.indexed else []), *(0.1 for _ in row.parameters)]
    rows = [{"xs": [encode(x) for x in xs], "given": given} for xs in lists]
    found = json.loads(v8.call("evaluateRow", row.name, rows))
    for xs, (out, slopes) in zip(lists, found, strict=True):
        expected = row.on(xs, *given)
        local_grads = row.local_grads_on(xs, *given, expected)
        for x, y in zip([expected, *local_grads], map(decode, [out, *slopes]), strict=True):
            assert x == pytest.approx(y, rel=1e-14, abs=1e-300, nan_ok=True), (xs, expected, local_grads)
