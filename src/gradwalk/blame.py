"""Where a gradient went wrong: `detect_nonfinite` names the operation that first made an inf or nan, and its line.

`gradient_report` shows where gradients vanish or explode, scope by scope. Both are for looking, not for training
runs: every node is kept, with the place it was made in, while the block is active.
"""

from __future__ import annotations

import html
import math
import os
import statistics
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from gradwalk import engine
from gradwalk.control import WithBlock, changed, on_construct
from gradwalk.interface import number_of
from gradwalk.modes import current
from gradwalk.passes import THE_PASS, Shared
from gradwalk.reference import contribution
from gradwalk.scopes import path_of
from gradwalk.structure import VALUE_TYPES, is_value

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = tuple(
    {os.path.abspath(sysconfig.get_paths()[kind]) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
)
# here rows of the table are run on Values: a branch that is not taken may be inf there, and is no fault
_RUNS_ROWS = _PACKAGE + "higher_order.py"
CHAIN = 6  # steps of a chain that are shown


class NonFiniteError(FloatingPointError):
    """An inf or nan, with the operation that made it: `node`, `phase`, `file` and `line`."""

    def __init__(self, text: str, node: Any, phase: str, site: tuple[str, int] | None) -> None:
        super().__init__(text)
        self.node, self.phase = node, phase
        self.file: str | None = site[0] if site else None
        self.line: int | None = site[1] if site else None


class detect_nonfinite(WithBlock):  # noqa: N801  # used like a function
    """Inside, in this thread and task, the operation that first makes an inf or nan raises, and says where it stands.

    It does so going forward, and in backward().

    >>> from gradwalk import Value
    >>> with detect_nonfinite():
    ...     Value(1e200, label="a") * 1e200
    Traceback (most recent call last):
        ...
    gradwalk.blame.NonFiniteError: '*' made inf in the forward pass, at <doctest gradwalk.blame.detect_nonfinite[1]>:2
      from 1e+200 (node 'a') and 1e+200
      the chain: 'a' = 1e+200 → '*' (line 2) = inf
    """

    def _inside(self) -> AbstractContextManager[None]:
        return _detecting(_Detector())

    def _recreate_cm(self) -> detect_nonfinite:
        return detect_nonfinite()


@contextmanager
def _detecting(detector: _Detector) -> Iterator[None]:
    told = detector.on_record
    with _watched_backward(), changed(on_record=told, watched=True, detector=detector), on_construct(told):
        yield


class _Detector:
    def __init__(self) -> None:
        self.sites: dict[Any, tuple[str, int] | None] = {}  # holds the nodes, so that no other takes their place

    def on_record(self, node: Any) -> None:
        site, is_row = _users_line()
        self.sites[node] = site
        if math.isfinite(node.data) or is_row:
            return
        culprit = node
        while True:  # a node from before the block was not seen when it was made, but it is seen when it is used
            unseen = [c for c in culprit._children if c._children and c not in self.sites and not math.isfinite(c.data)]
            if not unseen:
                break
            culprit = unseen[0]
        raise self.error(culprit, "forward", self.forward_text(culprit, site), site)

    def forward_text(self, node: Any, site: tuple[str, int] | None) -> str:
        entered = [child for child in node._children if not child._children and not math.isfinite(child.data)]
        if entered:
            return f"{_shown(entered[0])} came in as an input, and was first used by {node._op!r}{_at(site)}"
        return f"{node._op!r} made {node.data!r} in the forward pass{_at(site)}"

    def error(self, node: Any, phase: str, text: str, site: tuple[str, int] | None) -> NonFiniteError:
        operands = " and ".join(_shown(child) for child in node._children[:4])
        more = f" and {len(node._children) - 4} more" if len(node._children) > 4 else ""
        lines = [text, f"  from {operands}{more}"] if node._children else [text]
        chain = _chain(node)
        if len(chain) > 1:
            steps = [f"{step.label!r} = {step.data!r}" if step.label else self.step_text(step) for step in chain]
            lines.append("  the chain: " + " → ".join(steps))
        return NonFiniteError("\n".join(lines), node, phase, site)

    def step_text(self, node: Any) -> str:
        site = self.sites.get(node)
        line = f" (line {site[1]})" if site else ""
        return f"{node._op!r}{line} = {node.data!r}" if node._op else repr(node.data)

    # ------------------------------------------------------------ backward

    def backward(self, original: Any, root: Any, create_graph: bool) -> None:
        order = engine.topological_order(root)
        with engine.taking_turns(), THE_PASS.lock:
            leaves = [(node, node.grad) for node in order if not node._children]
            for leaf, grad in leaves:
                number = number_of(grad)
                if not leaf._constant and not math.isfinite(number):
                    text = f"the grad of {_shown(leaf)} was {number!r} before this backward pass; set it to 0 first"
                    raise NonFiniteError(text, leaf, "backward", None)
            original(root, create_graph)
            found = self.first_nonfinite(order)
            if found is not None:
                for leaf, grad in leaves:
                    leaf.grad = grad
                raise found

    def first_nonfinite(self, order: list[Any]) -> NonFiniteError | None:
        """Walk as backward() did: the first node whose own gradient is finite and what it hands on is not."""
        for node in reversed(order):
            if node._constant:
                continue
            grad, site = number_of(node.grad), self.sites.get(node)
            if not math.isfinite(grad):
                text = f"the gradient of {_shown(node)} overflowed as its contributions were added up{_at(site)}"
                return self.error(node, "backward", text, site)
            for i, (child, local_grad) in enumerate(zip(node._children, node._local_grads, strict=False)):
                handed_on = contribution(local_grad, grad, node._name)
                if not child._constant and not math.isfinite(handed_on):
                    text = (
                        f"{node._op!r} made {handed_on!r} in the backward pass{_at(site)}\n  it handed operand "
                        f"{i} its local gradient {local_grad!r} times its own gradient {grad!r}"
                    )
                    return self.error(node, "backward", text, site)
            if not node._local_grads:
                wrong = [child for child in node._children if not math.isfinite(number_of(child.grad))]
                if wrong:
                    text = f"the hand-written _backward of {node._op!r} made {number_of(wrong[0].grad)!r}{_at(site)}"
                    return self.error(node, "backward", text, site)
        return None


def _watch_backward(_: Any) -> None:
    for cls in VALUE_TYPES:
        for name, watched in (("backward", _watched), ("_gradients", _refused)):
            if name in cls.__dict__ and (cls, name) not in _originals:
                _originals[cls, name] = cls.__dict__[name]
                setattr(cls, name, watched(cls.__dict__[name]))


def _unwatch_backward() -> None:
    for (cls, name), original in list(_originals.items()):
        setattr(cls, name, original)
        del _originals[cls, name]


# backward() is replaced while any block is active, in any thread; in other threads it does what it did
_watched_backward = Shared(_watch_backward, _unwatch_backward)
_originals: dict[tuple[type, str], Any] = {}


def _watched(original: Any) -> Any:
    def backward(self: Any, create_graph: bool = False) -> None:
        detector = current().detector
        if detector is None:
            original(self, create_graph)
        else:
            detector.backward(original, self, create_graph)

    return backward


def _refused(original: Any) -> Any:
    """The pass that engine.gradients_of asks for first: None sends it to backward(), which is watched."""

    def gradients(self: Any, inputs: list[Any]) -> list[float] | None:
        found: list[float] | None = original(self, inputs) if current().detector is None else None
        return found

    return gradients


# ---------------------------------------------------------------- words


def _users_line() -> tuple[tuple[str, int] | None, bool]:
    """The innermost line that is neither gradwalk's nor a library's; and whether a derivative is being recorded."""
    frame = sys._getframe(2)
    is_row, library = False, None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            if not file.startswith(_LIBRARIES) and not file.startswith("<frozen"):
                return (file, frame.f_lineno), is_row
            library = library or (file, frame.f_lineno)
        elif file == _RUNS_ROWS:
            is_row = True
        frame = frame.f_back  # type: ignore[assignment]
    return library, is_row


def _at(site: tuple[str, int] | None) -> str:
    return f", at {site[0]}:{site[1]}" if site else ", in a node made before the block"


def _shown(value: Any) -> str:
    return repr(value.data) + (f" (node {value.label!r})" if value.label else "")


def _chain(node: Any) -> list[Any]:
    """The shortest way to the node from a labelled one, or from a leaf if nothing has a label."""
    came_from: dict[Any, Any] = {node: None}
    queue = deque([node])
    start = None
    while queue:
        here = queue.popleft()
        if here is not node and here.label:
            start = here
            break
        if start is None and not here._children and not here._constant:
            start = here
        for child in here._children:
            if child not in came_from:
                came_from[child] = here
                queue.append(child)
    chain = []
    while start is not None:
        chain.append(start)
        start = came_from[start]
    return chain if len(chain) <= CHAIN else [chain[0], *chain[1 - CHAIN :]]


# ---------------------------------------------------------------- gradients by scope

VANISHING, EXPLODING = 1e-6, 1e3  # of a scope's median |gradient|, of its largest


@dataclass(frozen=True)
class ScopeGradients:
    """The sizes of the gradients of one scope's nodes."""

    scope: str
    nodes: int
    smallest: float  # of those that are not 0
    median: float
    largest: float
    zero: float  # share of gradients that are 0
    nonfinite: int

    @property
    def verdict(self) -> str:
        if self.nonfinite:
            return "inf or nan"
        if self.largest > EXPLODING:
            return "exploding"
        if self.largest == 0.0:
            return "no gradient"
        return "vanishing" if self.median < VANISHING else ""


@dataclass(frozen=True)
class GradientReport:
    """Gradients by scope, from the inputs to the loss; it shows itself as a table and a plot, in a notebook as one."""

    scopes: list[ScopeGradients]

    def rows(self) -> list[tuple[str, ...]]:
        """The table's cells, its head first."""
        lines: list[tuple[str, ...]] = [("scope", "nodes", "smallest", "median", "largest", "zero", "")]
        for s in self.scopes:
            sizes = (f"{s.smallest:.1e}", f"{s.median:.1e}", f"{s.largest:.1e}", f"{s.zero:.0%}")
            lines.append((s.scope, f"{s.nodes:,}", *sizes, s.verdict))
        return lines

    def table(self) -> str:
        lines = self.rows()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        justified = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:-1], widths[1:-1]), line[-1]] for line in lines]
        return "\n".join("  ".join(cells).rstrip() for cells in justified)

    def plot(self, width: int = 48) -> str:
        """From the smallest to the largest |gradient| of each scope, on a logarithmic axis; ◆ is the median."""
        axis = _Axis.over(self.scopes)
        if axis is None:
            return "(no gradients to draw)"

        def column(x: float) -> int:
            return round(axis.place(x) * (width - 1))

        name_width = max(len(s.scope) for s in self.scopes)
        lines = []
        for s in self.scopes:
            cells = [" "] * width
            if s.largest > 0.0:
                for i in range(column(s.smallest), column(s.largest) + 1):
                    cells[i] = "─"
                cells[column(s.median)] = "◆"
            lines.append(f"{s.scope.ljust(name_width)} │{''.join(cells)}│")
        low, high = axis.ends()
        return "\n".join([*lines, " " * (name_width + 2) + low + high.rjust(width - len(low))])

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.plot()}"

    def _repr_html_(self) -> str:
        """The table with the plot as its last column."""
        axis = _Axis.over(self.scopes)
        head, *body = self.rows()
        low, high = axis.ends() if axis else ("", "")
        ends = f'<span style="float: left">{low}</span><span style="float: right">{high}</span>'
        lines = [_html_row("th", head, ends)]
        lines += [_html_row("td", cells, _html_bar(s, axis)) for cells, s in zip(body, self.scopes, strict=True)]
        return f'<table style="font-variant-numeric: tabular-nums">{"".join(lines)}</table>'


@dataclass(frozen=True)
class _Axis:
    """Powers of ten from one exponent to another."""

    low: int
    high: int

    @classmethod
    def over(cls, scopes: list[ScopeGradients]) -> _Axis | None:
        sizes = [x for s in scopes for x in (s.smallest, s.median, s.largest) if 0.0 < x < math.inf]
        if not sizes:
            return None
        low = math.floor(math.log10(min(sizes)))
        return cls(low, max(math.ceil(math.log10(max(sizes))), low + 1))

    def place(self, x: float) -> float:
        """Between 0, the lowest end, and 1, the highest."""
        exponent = math.log10(x) if x > 0.0 else -math.inf
        return (min(max(exponent, self.low), self.high) - self.low) / (self.high - self.low)

    def ends(self) -> tuple[str, str]:
        return f"1e{self.low:+03d}", f"1e{self.high:+03d}"


BAR = 240  # the width of a bar in a notebook, in pixels


def _html_row(tag: str, cells: tuple[str, ...], last: str) -> str:
    name, *numbers, verdict = (html.escape(cell) for cell in cells)
    left, right = f'<{tag} style="text-align: left">', f'<{tag} style="text-align: right">'
    filled = [left + name, *(right + number for number in numbers), left + verdict]
    bar = f'<{tag} style="min-width: {BAR + 12}px">{last}</{tag}>'
    return "<tr>" + "".join(f"{cell}</{tag}>" for cell in filled) + bar + "</tr>"


def _html_bar(scope: ScopeGradients, axis: _Axis | None) -> str:
    """From the smallest to the largest |gradient|, with a diamond at the median."""
    if axis is None or scope.largest <= 0.0:
        return ""
    start, middle, end = (6.0 + axis.place(x) * BAR for x in (scope.smallest, scope.median, scope.largest))
    return (
        f'<svg width="{BAR + 12}" height="14" stroke="currentColor" fill="currentColor">'
        f'<line x1="{start:.1f}" y1="7" x2="{end:.1f}" y2="7" stroke-width="2"/>'
        f'<path d="M{middle - 5.0:.1f} 7l5 -5 5 5 -5 5z"/></svg>'
    )


def gradient_report(loss: Any, depth: int | None = None) -> GradientReport:
    """The sizes of d loss / d node by scope, `depth` names deep: where gradients vanish, and where they explode.

    The grad of every leaf is put back afterwards.

    >>> from gradwalk import Value
    >>> from gradwalk.scopes import scope
    >>> x = Value(1.0)
    >>> with scope("first"):
    ...     h = x * 1e-9
    >>> with scope("second"):
    ...     out = h * 1e-3
    >>> print(gradient_report(out).table())
    scope   nodes  smallest   median  largest  zero
    first       2   1.0e-12  5.0e-04  1.0e-03    0%
    second      1   1.0e+00  1.0e+00  1.0e+00    0%
    """
    if not is_value(loss):
        raise TypeError(f"gradient_report: expected a Value, got a {type(loss).__name__}")
    order = engine.topological_order(loss)
    with engine.taking_turns(), THE_PASS.lock:
        kept = [(node, node.grad) for node in order if not node._children]
        try:
            for leaf, _ in kept:
                leaf.grad = 0.0
            loss.backward()
            sizes = _sizes_by_scope(order, depth)
        finally:
            for leaf, grad in kept:
                leaf.grad = grad
    return GradientReport([_summary(name, found) for name, found in sizes.items()])


def _sizes_by_scope(order: list[Any], depth: int | None) -> dict[str, list[float]]:
    paths = {node: path_of(node) for node in order if not node._constant}
    for node in order:  # an input that was made outside every scope belongs to the first that uses it
        for child in node._children:
            if not child._children and not paths.get(child, "constant"):
                paths[child] = paths[node]
    sizes: dict[str, list[float]] = {}
    for node, path in paths.items():
        sizes.setdefault("/".join(path[:depth]) or "(no scope)", []).append(abs(number_of(node.grad)))
    return sizes


def _summary(scope: str, sizes: list[float]) -> ScopeGradients:
    finite = [size for size in sizes if math.isfinite(size)]
    nonzero = [size for size in finite if size]
    return ScopeGradients(
        scope, len(sizes), min(nonzero, default=0.0), statistics.median(finite) if finite else math.nan,
        max(finite, default=0.0), 1.0 - len(nonzero) / len(finite) if finite else 0.0, len(sizes) - len(finite),
    )  # fmt: skip
