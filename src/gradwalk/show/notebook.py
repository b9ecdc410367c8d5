"""How a Value shows itself in a notebook: as a picture, by Graphviz where pygraphviz is installed, else by svg.py.

A saved notebook keeps the picture, since it is plain SVG. The live front end is `gradwalk.play(value)`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from gradwalk.graph import Graph
from gradwalk.show.dot import following, outputs, rendered, source
from gradwalk.show.svg import picture

WIDEST = 960  # pixels: a notebook shows an SVG at its own size and cuts off what is beside the cell
MOST_BY_HAND = 24  # boxes without Graphviz, whose layout is better with many
MOST_SHOWN = (120, 48, 24, 12)  # boxes: what is too wide unfolded is folded up further
_SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')


def mimebundle(value: Any) -> dict[str, str]:
    """The picture as SVG beside the plain text; the text alone if it cannot be drawn."""
    try:
        return outputs(fitting_picture(Graph(value)), repr(value))
    except Exception:  # showing a number must not fail because its picture does
        return {"text/plain": repr(value)}


def fitting_picture(graph: Graph) -> str:
    """The graph as SVG that fits a cell: from left to right or from top to bottom, folded up until it does."""
    if find_spec("pygraphviz") is None:
        return picture(graph.overview(MOST_BY_HAND))
    narrowest = ""
    for most in MOST_SHOWN:
        view = graph.overview(most)
        for direction in ("LR", "TB"):
            drawn = following(rendered(source(view, direction=direction), "svg").decode())
            if width_of(drawn) <= WIDEST:
                return drawn
            narrowest = drawn if not narrowest or width_of(drawn) < width_of(narrowest) else narrowest
    return _scaled(narrowest, WIDEST / width_of(narrowest))


def width_of(picture: str) -> float:
    """The width that an SVG asks for, in pixels."""
    size = _SIZE.search(picture)
    return float(size[1]) * 96.0 / 72.0 if size else 0.0


def _scaled(picture: str, by: float) -> str:
    def size(found: re.Match[str]) -> str:
        return f'width="{float(found[1]) * by:.0f}pt" height="{float(found[2]) * by:.0f}pt"'

    return _SIZE.sub(size, picture, count=1)
