"""Seeing it: text, pictures, notebooks, the page. Importing this only gives both engines' Values two methods.

What they need is imported when they are called: `value.draw()` (dot.py), and how a notebook shows a Value.
"""

from __future__ import annotations

from typing import Any

from gradwalk import engine


def _draw(value: Any, *arguments: Any, **options: Any) -> Any:
    """Draw the graph this Value was computed by: draw("loss.svg"), .png or .pdf; theme="light" or "dark"."""
    from gradwalk.show.dot import draw

    return draw(value, *arguments, **options)


def _repr_mimebundle(value: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """A picture for a notebook, with the plain text beside it."""
    from gradwalk.show.notebook import mimebundle

    return mimebundle(value)


for _module in engine.available():
    _module.Value.draw = _draw
    _module.Value._repr_mimebundle_ = _repr_mimebundle
