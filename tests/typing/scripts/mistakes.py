"""What a type checker is to find. An ignored line without an error is an error of its own."""

from typing import TYPE_CHECKING

import gradwalk
from gradwalk import Value, grad, value_and_grad


def energy(xs: list[float], scale: float) -> float:
    return scale * gradwalk.sum([x * x for x in xs])


@gradwalk.compile
def compiled(xs: list[float], scale: float) -> float:
    return energy(xs, scale)


if TYPE_CHECKING:
    grad(energy)("text", 1.0)  # type: ignore[arg-type]
    grad(energy)([1.0])  # type: ignore[call-arg]
    force: str = grad(energy)([1.0], 2.0)  # type: ignore[assignment]
    both: tuple[float, str] = value_and_grad(energy)([1.0], 2.0)  # type: ignore[assignment]
    text: str = gradwalk.exp(Value(1.0))  # type: ignore[assignment]
    node: Value = gradwalk.exp(1.0)  # type: ignore[assignment]
    slope: str = Value(1.0).grad  # type: ignore[assignment]
    several: str = gradwalk.softmax([Value(1.0)])  # type: ignore[assignment]
    compiled("text", 1.0)  # type: ignore[call-overload]
    number: float = compiled([1.0], 1.0)  # type: ignore[assignment]
    compiled.backward([1.0])  # type: ignore[call-arg]
    first: Value = gradwalk.nn.Layer(2, 3)([1.0, 2.0])  # type: ignore[assignment]
    score: str = gradwalk.nn.MLP(2, [1])([1.0, 2.0])  # type: ignore[assignment]
    gradwalk.sofmax  # type: ignore[attr-defined] # noqa: B018
