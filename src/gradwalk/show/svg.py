"""A picture of a graph without Graphviz: plain SVG, light or dark as its reader is, and it can move.

`picture(view)` is what a notebook shows where pygraphviz is missing, as in the browser; `moving_picture(root)` shows
the forward and the backward pass, step by step, as the README and the lessons do. `dot.py` draws large graphs better.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradwalk.graph import Graph, GraphView, edge_caption, short_number, shown_text
from gradwalk.interface import number_of
from gradwalk.show.layered import layered
from gradwalk.walk import walk

_LONGEST = 22  # characters of a name
_LETTER = 7.3  # pixels that one takes, at most
_HEIGHT = 62.0
_GAP_X, _GAP_Y, _MARGIN = 74.0, 16.0, 16.0
_GAP_DOWN = 46.0  # between rows, where a picture goes down: a number has to fit there, but not its width
_BEAT = 0.9  # seconds a step takes
_REST = 4  # beats at the end, to look at the result

_STYLE = """
.gw { font: 12.5px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  --paper: #ffffff; --ink: #1d2433; --quiet: #5f6878; --grad: #a83a08; --line: #b4bccb; --node: #ffffff;
  --leaf: #eaf3ff; --leaf-line: #7fa8e6; --root: #fff3e6; --root-line: #e0924a; --badge: #e9edf4; }
@media (prefers-color-scheme: dark) { .gw {
  --paper: #10141d; --ink: #e8ecf4; --quiet: #98a2b5; --grad: #ffad70; --line: #4a5468; --node: #1a202d;
  --leaf: #16273f; --leaf-line: #4a77b8; --root: #33241a; --root-line: #c0793a; --badge: #2b3446; } }
.gw .paper { fill: var(--paper); } .gw text { fill: var(--ink); } .gw .name { font-weight: 600; }
.gw .quiet { fill: var(--quiet); font-size: 11px; } .gw .grad { fill: var(--grad); }
.gw .sign { font-weight: 700; text-anchor: middle; }
.gw .number { text-anchor: end; font-variant-numeric: tabular-nums; }
.gw .caption { fill: var(--grad); font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; stroke-linejoin: round; }
.gw .card { fill: var(--node); stroke: var(--line); } .gw .leaf .card { fill: var(--leaf); stroke: var(--leaf-line); }
.gw .root .card { fill: var(--root); stroke: var(--root-line); stroke-width: 1.8; } .gw .badge { fill: var(--badge); }
.gw .edge { fill: none; stroke: var(--line); stroke-width: 1.3; }
.gw .way { fill: none; stroke: var(--grad); stroke-width: 2.4; stroke-linecap: round; }
"""


def picture(view: GraphView) -> str:
    """A view of a graph as SVG: leaves on the left, the result on the right, the local gradients on the edges.

    >>> from gradwalk import Value
    >>> from gradwalk.graph import Graph
    >>> picture(Graph(Value(2.0, label="a") * 3.0).view()).count("<rect class='card'")
    2
    """
    return _Drawing(view).text()


def moving_picture(root: Any, is_tall: bool = False) -> str:
    """The passes from the leaves to `root` and back as an animated SVG; it stands still where motion is not wanted.

    A tall one goes down instead of to the right, as fits a phone.
    """
    steps = walk(root, fresh=True)
    steps.seek(len(steps))
    return _Drawing(Graph(root).view(), steps, is_tall).text()


@dataclass
class _Card:
    """What stands in the box of one item."""

    title: str
    sign: str
    rows: list[tuple[str, str]]
    kind: str

    @property
    def width(self) -> float:
        longest = max([len(self.title), *(len(caption) + len(number) + 2 for caption, number in self.rows)])
        return _LETTER * longest + 20.0 + (0.0 if not self.sign else self.badge + 8.0)

    @property
    def badge(self) -> float:
        return max(26.0, _LETTER * len(self.sign) + 12.0)


class _Drawing:
    def __init__(self, view: GraphView, steps: Any = None, is_tall: bool = False) -> None:
        self.view, self.steps, self.is_tall = view, steps, is_tall
        self.shown = [k for k in range(len(view.items)) if view.operation(k) != "constant"] or [0]
        place = {k: i for i, k in enumerate(self.shown)}
        self.edges = [edge for edge in view.edges if edge.child in place and edge.parent in place]
        self.cards = [self.card(k) for k in self.shown]
        sizes = [(card.width, _HEIGHT if len(card.rows) > 1 else 46.0) for card in self.cards]
        links = [(place[edge.child], place[edge.parent]) for edge in self.edges]
        captions = [len(edge_caption(edge)) for edge in self.edges]
        if is_tall:
            self.layout = layered([(height, width) for width, height in sizes], links, _GAP_DOWN, _GAP_Y).turned()
        else:  # what stands still is as narrow as it can be: a page makes what is too wide for it smaller
            self.layout = layered(sizes, links, _GAP_X if steps else _LETTER * max([2, *captions]) + 26.0, _GAP_Y)
        self.beats: list[str] = []
        # when each node's number appears on the way forward, and when its gradient is complete on the way back
        self.forward, self.backward = self.times() if steps else ({}, {})

    # ---------------------------------------------------------------- time

    def times(self) -> tuple[dict[int, int], dict[int, list[int]]]:
        forward: dict[int, int] = {}
        computed = [i for i in range(len(self.shown)) if self.cards[i].kind != "leaf"]
        for beat, i in enumerate(computed, 1):
            forward[i] = beat
        item_of = {id(self.view.graph.order[self.view.items[k].nodes[0]]): i for i, k in enumerate(self.shown)}
        backward: dict[int, list[int]] = {}
        for beat, step in enumerate(self.steps, len(computed) + 1):
            for part in step.contributions:
                if id(part.child) in item_of:
                    backward.setdefault(item_of[id(part.child)], []).append(beat)
        return forward, backward

    @property
    def beats_in_all(self) -> int:
        return len(self.forward) + len(self.steps) + _REST

    def appearing(self, beat: int, until: int | None = None) -> str:
        """A class whose elements are seen from a beat on, to the end or `until` another."""
        if not beat:
            return ""
        name = f"b{beat}" + (f"-{until}" if until else "")
        if name not in self.beats:
            self.beats.append(name)
        return name

    def animations(self) -> str:
        rules = []
        total = self.beats_in_all
        for name in self.beats:
            start, _, end = name[1:].partition("-")
            begin = 100.0 * int(start) / total
            shown = f"{begin:.2f}% {{ opacity: 0 }} {begin + 3:.2f}% {{ opacity: 1 }}"
            if end:
                stop = 100.0 * int(end) / total
                frames = f"0%, {shown} {stop:.2f}% {{ opacity: 1 }} {stop + 2:.2f}%, 100% {{ opacity: 0 }}"
                rest = 0
            else:
                frames = f"0%, {shown} 99.9%, 100% {{ opacity: 1 }}"
                rest = 1
            rules.append(
                f"@keyframes {name} {{ {frames} }}\n.gw .{name} {{ opacity: {rest};"
                f" animation: {name} {total * _BEAT:.1f}s infinite; }}"
            )
        rules.append("@media (prefers-reduced-motion: reduce) { .gw * { animation: none !important; } }")
        return "\n".join(rules)

    # ---------------------------------------------------------------- shapes

    def card(self, k: int) -> _Card:
        view, item = self.view, self.view.items[k]
        operation = view.operation(k)
        if item.kind != "node":
            return _Card(_cut(view.title(k)), "", [("nodes", f"{len(item.nodes):,}")], "fold")
        node = view.graph.order[item.nodes[0]]
        grad = short_number(self.steps.grad(node) if self.steps else number_of(node.grad))
        rows = [("data", short_number(node.data)), ("grad", grad)]
        if operation == "leaf":
            return _Card(_cut(view.title(k)), "", rows, "leaf")
        root = item.nodes[0] == len(view.graph) - 1
        return _Card(_cut(view.title(k)), _cut(view.glyph(k), 10), rows, "root" if root else "node")

    def text(self) -> str:
        parts = [self.edge(number) for number in range(len(self.edges))]
        parts += [self.box(i) for i in range(len(self.cards))]
        width, height = self.layout.width + 2 * _MARGIN, self.layout.height + 2 * _MARGIN
        said = html.escape(self.said())
        style = _STYLE + (self.animations() if self.steps else "")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gw" role="img" aria-label="{said}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
            f"<style>{style}</style><rect class='paper' width='100%' height='100%' rx='8'/>"
            f"<g transform='translate({_MARGIN:.0f} {_MARGIN:.0f})'>{''.join(parts)}</g></svg>"
        )

    def said(self) -> str:
        """The picture in words, for who does not see it."""
        graph = self.view.graph
        leaves = [i for i in range(len(graph)) if not graph.children[i] and not graph.order[i]._constant]
        named = ", ".join(f"{graph.names[i]} = {short_number(graph.order[i].data)}" for i in leaves[:6])
        root = graph.order[-1]
        return f"Graph of {graph.names[-1]} = {short_number(root.data)}, computed from {named}"

    def box(self, i: int) -> str:
        card, at = self.cards[i], self.layout.boxes[i]
        parts = [f"<rect class='card' width='{at.width:.0f}' height='{at.height:.0f}' rx='9'/>"]
        left = 10.0
        if card.sign:
            parts.append(
                f"<rect class='badge' x='7' y='7' width='{card.badge:.0f}' height='{at.height - 14:.0f}' rx='6'/>"
                f"<text class='sign' x='{7 + card.badge / 2:.1f}' y='{at.height / 2 + 4:.0f}'>"
                f"{html.escape(card.sign)}</text>"
            )
            left += card.badge + 6.0
        parts.append(f"<text class='name' x='{left:.0f}' y='18'>{html.escape(card.title)}</text>")
        for row, (caption, number) in enumerate(card.rows):
            y = 36 + 17 * row
            hidden = ""
            if self.steps and caption == "data":
                hidden = self.appearing(self.forward.get(i, 0))
            colour = "grad" if caption == "grad" else ""
            parts.append(f"<text class='quiet' x='{left:.0f}' y='{y}'>{caption}</text>")
            if self.steps and caption == "grad":
                parts.append(self.gradients(i, at.width - 10, y))
            else:
                parts.append(f"<text class='number {colour} {hidden}' x='{at.width - 10:.0f}' y='{y}'>{number}</text>")
        return f"<g class='{card.kind}' transform='translate({at.x:.1f} {at.y:.1f})'>{''.join(parts)}</g>"

    def gradients(self, i: int, x: float, y: float) -> str:
        """The gradient of a node as it grows: one text for each contribution, each seen until the next."""
        node = self.view.graph.order[self.view.items[self.shown[i]].nodes[0]]
        after = [part.after for step in self.steps for part in step.contributions if part.child is node]
        beats = self.backward.get(i, [])
        texts = []
        for place, (beat, value) in enumerate(zip(beats, after, strict=True)):
            until = next((later for later in beats if later > beat), None)
            if until is None and place + 1 < len(beats):
                continue  # two contributions in one step: the last one counts
            name = self.appearing(beat, until)
            texts.append(f"<text class='number grad {name}' x='{x:.0f}' y='{y}'>{short_number(value)}</text>")
        return "".join(texts)

    def edge(self, number: int) -> str:
        edge, points = self.edges[number], self.layout.routes[number]
        path = _curve(points, self.is_tall)
        caption = edge_caption(edge) if edge.local_grad is not None else ""
        (x0, y0), (x1, y1) = points[-2], points[-1]
        label = (
            f"<text class='caption' x='{(x0 + x1) / 2:.1f}' y='{(y0 + y1) / 2 + 4:.1f}'>{html.escape(caption)}</text>"
        )
        line = f"<path class='edge' d='{path}'/>"
        if not self.steps:
            return line + (label if caption else "")
        parent = self.view.graph.order[self.view.items[edge.parent].nodes[0]]
        beat = len(self.forward) + 1 + next(k for k, step in enumerate(self.steps) if k and step.node is parent)
        way = f"<path class='way {self.appearing(beat, beat + 1)}' d='{path}'/>"
        return f"{line}{way}<g class='{self.appearing(beat)}'>{label}</g>"


def _curve(points: Sequence[tuple[float, float]], is_tall: bool) -> str:
    """A smooth line from left to right, or downwards, through the points."""
    (x, y), rest = points[0], points[1:]
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        across, down = (x + nx) / 2, (y + ny) / 2
        bends = [(x, down), (nx, down)] if is_tall else [(across, y), (across, ny)]
        parts.append("C" + " ".join(f"{px:.1f} {py:.1f}" for px, py in (*bends, (nx, ny))))
        x, y = nx, ny
    return "".join(parts)


def _cut(text: str, longest: int = _LONGEST) -> str:
    shown = shown_text(text).replace("\n", " ")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"
