"""Pictures of a graph: `value.draw("loss.svg")` as SVG, PNG or PDF, through pygraphviz.

What is drawn is bounded: a large graph is shown with its scopes and repetitions folded up (`graph.py`), so that a
picture is never late. Labels are text wherever they end up.
"""

from __future__ import annotations

import base64
import html
import importlib
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradwalk.files import write_file
from gradwalk.graph import Edge, Graph, GraphView, dot_string, edge_caption, glyph_of, short_number, shown_text
from gradwalk.interface import number_of
from gradwalk.scopes import path_of

FORMATS = ("svg", "png", "pdf")
MOST_DRAWN = 300
_LONGEST_NAME = 28
_LONGEST_ROW = 14  # boxes that still fit beside each other


@dataclass(frozen=True)
class Theme:
    """The colours of a picture. No two of the light ones are the same, so that each tells which dark one it becomes."""

    paper: str
    ink: str
    quiet: str  # captions, edges, constants
    gradient: str
    outline: str
    node: str
    leaf: str
    leaf_outline: str
    badge: str
    root: str
    root_outline: str
    fold: str
    scope: str


THEMES = {
    "light": Theme(
        paper="#ffffff", ink="#1d2433", quiet="#6e7787", gradient="#b4400c", outline="#c3cad6", node="#fefefe",
        leaf="#eaf3ff", leaf_outline="#7fa8e6", badge="#eceff5", root="#fff3e6", root_outline="#e0924a",
        fold="#f1eefb", scope="#f7f9fc",
    ),
    "dark": Theme(
        paper="#10141d", ink="#e8ecf4", quiet="#8b95a8", gradient="#ffad70", outline="#3b4557", node="#1a202d",
        leaf="#16273f", leaf_outline="#4a77b8", badge="#2b3446", root="#33241a", root_outline="#c0793a",
        fold="#262141", scope="#151b27",
    ),
}  # fmt: skip
_FONT = "Helvetica"


def draw(
    value: Any, path: str | os.PathLike[str] | None = None, theme: str = "", *,
    format: str | None = None, most: int = MOST_DRAWN, direction: str = "",
) -> Any:  # fmt: skip
    """Draw the graph a Value was computed by: to a file, or without a path as something a notebook shows.

    The file's ending chooses the format. At most `most` boxes are drawn. The `theme` is light or dark; without one a
    file is light, and in a notebook the picture is as the notebook is. `direction` is Graphviz's rankdir; without one,
    the leaves are on the left and the result on the right, or above and below if the graph is long.
    """
    if path is None and format is None:
        svg = rendered(source(Graph(value).overview(most), theme, direction), "svg").decode()
        return ShownSvg(svg if theme else following(svg))
    ending = (format or Path(os.fspath(path or "")).suffix.lstrip(".")).lower()
    if ending not in FORMATS:
        expected = "a file name that ends in" if format is None else "a format of"
        raise ValueError(f"draw: expected {expected} {', '.join(FORMATS)}, got {format or str(path)!r}")
    image = rendered(source(Graph(value).overview(most), theme, direction), ending)
    if path is None:
        return image
    write_file(path, image)
    return None


class ShownSvg:
    """An SVG that a notebook shows; `str()` is its source."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return outputs(self.svg, repr(self))

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture: {len(self.svg):,} characters of SVG; give draw() a path to keep it>"


def outputs(svg: str, text: str) -> dict[str, str]:
    """A picture in every form that a notebook may show; as HTML it is told whether the notebook is light or dark."""
    encoded = base64.b64encode(svg.encode()).decode()
    rules = "".join(
        f"[data-jp-theme-light={is_light}] .gradwalk-picture, .vscode-{theme} .gradwalk-picture"
        f" {{ color-scheme: {theme} }} "
        for theme, is_light in (("light", "true"), ("dark", "false"))
    )
    image = f'<img class="gradwalk-picture" alt="{html.escape(text)}" src="data:image/svg+xml;base64,{encoded}">'
    return {"text/plain": text, "image/svg+xml": svg, "text/html": f"<style>{rules}</style>{image}"}


def following(svg: str) -> str:
    """A light picture that is dark where the page around it is."""
    dark = vars(THEMES["dark"])
    rules = "".join(
        f'.gradwalk [{kind}="{light}"] {{ {kind}: {dark[name]} }} '
        for name, light in vars(THEMES["light"]).items()
        for kind in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{ {rules}}}</style>"
    return re.sub("<svg ([^>]*)>", rf'<svg class="gradwalk" \g<1>>{style}', svg, count=1)


def graphviz() -> Any:
    """The library that draws."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("pygraphviz")
    except ImportError as error:
        raise ImportError("draw: expected pygraphviz to be installed; pip install 'gradwalk[draw]'") from error


def rendered(dot: str, format: str, placed: bool = False) -> bytes:
    """Graphviz source as a picture; in one that is `placed`, every node says where it is."""
    library = graphviz()
    with warnings.catch_warnings(), without_font_warnings():
        warnings.simplefilter("ignore")  # about fonts it would like to have
        agraph = library.AGraph(string=dot)
        return bytes(agraph.draw(format=format, prog="nop2" if placed else "dot"))


@contextmanager
def without_font_warnings() -> Iterator[None]:
    """Keep what the font library of Graphviz's wheel says about the system's font settings off stderr."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with tempfile.TemporaryFile() as said:
            os.dup2(said.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(stderr, 2)
                said.seek(0)
                for line in said:
                    if not line.startswith(b"Fontconfig"):
                        os.write(2, line)
    finally:
        os.close(stderr)


# ---------------------------------------------------------------- the source


def source(view: GraphView, theme: str = "", direction: str = "") -> str:
    """A GraphView as Graphviz source in the colours of a theme, light without one."""
    if theme and theme not in THEMES:
        raise ValueError(f"draw: expected a theme of {', '.join(THEMES)}; got {theme!r}")
    if direction not in ("", "LR", "RL", "TB", "BT"):
        raise ValueError(f"draw: expected a direction of LR, RL, TB, BT; got {direction!r}")
    return _Source(view, THEMES[theme or "light"], direction).text()


class _Source:
    def __init__(self, view: GraphView, theme: Theme, direction: str) -> None:
        self.view, self.theme = view, theme
        self.root = view.item_of.get(len(view.graph) - 1)
        self.is_folded = any(item.kind != "node" for item in view.items)
        # beside folded structure, plain numbers only distract
        self.shown = [k for k in range(len(view.items)) if not (self.is_folded and view.operation(k) == "constant")]
        self.drawn = set(self.shown)
        self.folds = {item.path for item in view.items if item.kind == "scope"}
        self.direction = direction or ("TB" if self.length() > _LONGEST_ROW else "LR")

    def text(self) -> str:
        theme = self.theme
        lines = [
            "digraph gradwalk {",
            f'  graph [rankdir={self.direction}, bgcolor="{theme.paper}", pad=0.35, nodesep=0.28,'
            f" ranksep={0.3 if self.is_folded else 0.62},"
            f' fontname="{_FONT}", fontsize=12, fontcolor="{theme.quiet}", labeljust=l, splines=spline, dpi=96'
            f"{self.caption()}];",
            f'  node [shape=box, style="rounded,filled", fontname="{_FONT}", fontsize=12, margin="0.11,0.06",'
            f' height=0, width=0, penwidth=1.1, fontcolor="{theme.ink}"];',
            f'  edge [color="{theme.quiet}", fontname="{_FONT}", fontsize=10.5, fontcolor="{theme.gradient}",'
            " arrowsize=0.6, penwidth=1];",
            *self.clustered(),
            *(line for edge in self.view.edges for line in self.edge(edge)),
        ]
        return "\n".join([*lines, "}", ""])

    def length(self) -> int:
        """The longest way through the items, in boxes; edges that run backwards, as between scopes, are left out."""
        longest = [1] * len(self.view.items)
        for edge in sorted(self.view.edges, key=lambda edge: edge.child):
            if edge.child < edge.parent and self.drawn >= {edge.child, edge.parent}:
                longest[edge.parent] = max(longest[edge.parent], longest[edge.child] + 1)
        return max(longest)

    def caption(self) -> str:
        view = self.view
        if not view.hidden and not self.is_folded:
            return ""
        parts = [f"{len(view.graph):,} nodes, shown as {len(self.shown):,}"]
        if view.hidden:
            parts.append(f"{view.hidden:,} further from the result are not shown")
        return f", labelloc=b, label={dot_string('; '.join(parts))}"

    def clustered(self) -> list[str]:
        """Every item, inside the frames of the scopes it was made in."""
        lines: list[str] = []
        by_path: dict[tuple[str, ...], list[int]] = {}
        for k in self.shown:
            item = self.view.items[k]
            path = item.path[:-1] if item.kind == "scope" else self.frame(item.nodes[0]) if item.kind == "node" else ()
            by_path.setdefault(path, []).append(k)
        here: tuple[str, ...] = ()
        for number, path in enumerate(sorted(by_path)):
            common = 0
            while common < min(len(here), len(path)) and here[common] == path[common]:
                common += 1
            lines += ["  }"] * (len(here) - common)
            for depth in range(common, len(path)):
                lines.append(
                    f'  subgraph cluster_{number}_{depth} {{ label={dot_string(path[depth])}; style="rounded,filled";'
                    f' color="{self.theme.outline}"; fillcolor="{self.theme.scope}"; margin=12; labelloc=t;'
                )
            lines += [self.item(k) for k in by_path[path]]
            here = path
        return [*lines, *(["  }"] * len(here))]

    def frame(self, i: int) -> tuple[str, ...]:
        """The scopes a node is drawn in; a plain number belongs to the operation it is used in."""
        graph = self.view.graph
        path = path_of(graph.order[graph.parents[i][0] if graph.order[i]._constant and graph.parents[i] else i])
        # a scope that is folded up has no frame beside its own box
        return next((path[:depth] for depth in range(len(path)) if path[: depth + 1] in self.folds), path)

    def item(self, k: int) -> str:
        item, theme = self.view.items[k], self.theme
        operation = self.view.operation(k)
        node = self.view.graph.order[item.nodes[-1]]
        tooltip = dot_string((node.label if item.kind == "node" else "") or self.view.title(k))
        if item.kind != "node":
            return f"  n{k} [{self.folded(k)}, tooltip={tooltip}];"
        if operation == "constant":
            return (
                f'  n{k} [label={dot_string(short_number(node.data))}, shape=plaintext, style="", margin="0.03,0.02",'
                f' fontcolor="{theme.quiet}", tooltip="a plain number"];'
            )
        fill, outline = (theme.leaf, theme.leaf_outline) if operation == "leaf" else (theme.node, theme.outline)
        if k == self.root:
            fill, outline = theme.root, theme.root_outline
        width = 1.8 if k == self.root else 1.1
        cut = ' style="rounded,filled,dashed",' if self.view.hidden and self.view.cut_edges(k) else ""
        return (
            f'  n{k} [label=<{self.table(k, node, operation)}>, fillcolor="{fill}", color="{outline}",'
            f"{cut} penwidth={width}, tooltip={tooltip}];"
        )

    def table(self, k: int, node: Any, operation: str) -> str:
        theme = self.theme
        rows = [
            ("data", short_number(node.data), theme.ink),
            ("grad", short_number(number_of(node.grad)), theme.gradient),
        ]
        badge = "" if operation == "leaf" else (
            f'<TD ROWSPAN="3" STYLE="ROUNDED" BGCOLOR="{theme.badge}" CELLPADDING="5">'
            f'<FONT POINT-SIZE="13"><B> {_escaped(self.view.glyph(k), 12)} </B></FONT></TD>'
            '<TD ROWSPAN="3" WIDTH="6"></TD>'
        )  # fmt: skip
        lines = [f'<TR>{badge}<TD COLSPAN="2" ALIGN="LEFT"><B>{_escaped(self.view.title(k))}</B></TD></TR>']
        lines += [
            f'<TR><TD ALIGN="LEFT"><FONT COLOR="{theme.quiet}" POINT-SIZE="10">{caption} </FONT></TD>'
            f'<TD ALIGN="RIGHT"><FONT COLOR="{colour}" POINT-SIZE="11.5">{_escaped(number)}</FONT></TD></TR>'
            for caption, number, colour in rows
        ]
        return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{"".join(lines)}</TABLE>'

    def folded(self, k: int) -> str:
        """A box that stands for many nodes: a stack of sheets, with what is in it."""
        item, theme, graph = self.view.items[k], self.theme, self.view.graph
        count = len(item.nodes)
        operation = self.view.operation(k)
        if item.kind == "repeated":
            title, detail = self.view.glyph(k), f"×{count:,}"
        else:
            counts = Counter(glyph_of(graph.order[i]) for i in item.nodes).most_common()
            common = [f"{glyph} {n:,}" for glyph, n in counts if glyph not in ("leaf", "constant")]
            title, detail = item.path[-1], "   ".join([f"{count:,} nodes", *common[:3]])
        leaf = item.kind == "repeated" and operation == "leaf"
        fill, outline = (theme.leaf, theme.leaf_outline) if leaf else (theme.fold, theme.outline)
        quiet = f'<FONT COLOR="{theme.quiet}" POINT-SIZE="10.5">{_escaped(detail, 48)}</FONT>'
        label = f"<B>{_escaped(title)}</B>{' ' if item.kind == 'repeated' else '<BR/>'}{quiet}"
        return f'label=<{label}>, fillcolor="{fill}", color="{outline}", peripheries={2 if count > 1 else 1}'

    def edge(self, edge: Edge) -> list[str]:
        if not {edge.child, edge.parent} <= self.drawn:
            return []
        caption = edge_caption(edge) if edge.local_grad is not None else ""
        label = f"label={dot_string('  ' + caption + '  ')}" if caption else "penwidth=1.3"
        return [f"  n{edge.child} -> n{edge.parent} [{label}];"]


def _escaped(text: str, longest: int = _LONGEST_NAME) -> str:
    """Text for Graphviz's HTML-like labels."""
    shown = shown_text(text).replace("\n", " ")
    return html.escape(shown if len(shown) <= longest else shown[: longest - 1] + "…", quote=True)
