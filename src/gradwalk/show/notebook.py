"""How a Value shows itself in a notebook: as a picture, and as text wherever there is no pygraphviz.

A saved notebook keeps the picture, since it is plain SVG. The live front end is `gradwalk.play(value)`.
"""

from __future__ import annotations

from typing import Any

from gradwalk.graph import Graph
from gradwalk.show.dot import rendered, source

MOST_SHOWN = 120  # more boxes than this are not readable at the width of a cell


def mimebundle(value: Any) -> dict[str, str]:
    """The picture as SVG beside the plain text; the text alone if it cannot be drawn."""
    text = {"text/plain": repr(value)}
    try:
        svg = rendered(source(Graph(value).overview(MOST_SHOWN)), "svg").decode()
    except Exception:  # showing a number must not fail because its picture does
        return text
    return text | {"image/svg+xml": svg.replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1)}
