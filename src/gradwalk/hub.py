"""Many results of one call as nodes over one, a hub, which runs when all of them have their gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def nodes_over_one(
    cls: Any, data: Sequence[float], children: Sequence[Any], op: str, backward: Callable[[list[float]], None]
) -> list[Any]:
    """A node for each number; `backward` is given the gradients of all of them, in one go, unless all are 0.

    Each node leaves its gradient in a mailbox, from which there is no way back to the node.
    """
    mailboxes: list[Any] = []

    def run() -> None:
        gradients = [mailbox.grad for mailbox in mailboxes]
        for mailbox in mailboxes:
            mailbox.grad = 0.0
        if any(gradients):
            backward(gradients)

    hub = cls(0.0, children, op)
    hub._backward = run
    made = [cls(number, (0.0, hub), op, local_grads=(1.0, 0.0)) for number in data]
    mailboxes += [node._children[0] for node in made]
    return made
