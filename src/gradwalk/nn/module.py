"""What every model has: parameters, and a way to reset their gradients."""

from __future__ import annotations

from gradwalk.engine import Value


class Module:
    """The base of everything that has parameters."""

    def parameters(self) -> list[Value]:
        return []

    def zero_grad(self) -> None:
        """Reset every parameter's gradient; without it, gradients of successive steps add up."""
        for parameter in self.parameters():
            parameter.grad = 0.0
