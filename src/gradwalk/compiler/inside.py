"""Uses of a compiled function that give plain numbers: refused inside one that is compiled or differentiated.

There they would be fixed in every later call, or have no derivative, without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradwalk.compiler.reading import user_line, with_line
from gradwalk.compiler.trace import is_tracing
from gradwalk.control import current_modes, is_moving
from gradwalk.structure import flatten, values_among

if TYPE_CHECKING:
    from gradwalk.compiler.compile import AnyCompiled

_INSTEAD = "call the function itself there, or use gradwalk.grad and its like"


def refuse_traced(called: str, function: Callable[..., Any]) -> None:
    """A number would be fixed in every later call of the function around it."""
    if is_tracing():
        raise TypeError(
            f"compile: {called} of {with_line(function)} is called inside another compiled function, at "
            f"{user_line()}; {_INSTEAD}"
        )


def refuse_differentiated(
    called: str, compiled: AnyCompiled, use: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> None:
    """A number would have no derivative, where the nodes that `use` makes of the arguments depend on what moves."""
    if not current_modes().derivatives:  # it is another thread that differentiates
        return
    numbers: list[Any] = []
    flatten(use(*args, **kwargs), numbers)
    if any(map(is_moving, values_among(numbers))):
        raise TypeError(
            f"compile: {called} of {with_line(compiled.function)} depends, at {user_line()}, on what a function around "
            f"it is differentiated by, and gives plain numbers, which have no derivative; {_INSTEAD}; no_grad() "
            "around it says that none is wanted"
        )
