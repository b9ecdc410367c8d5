"""Derivatives of ordinary functions, annotated as people annotate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradwalk
import gradwalk.math as math
from gradwalk import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp


def swing(length: float, steps: int = 200, dt: float = 0.01) -> float:
    angle, speed = 0.5, 0.0
    for _ in range(steps):
        speed = speed - dt * 9.81 / length * math.sin(angle)
        angle = angle + dt * speed
    return angle


slope: float = grad(swing)(1.0, steps=20)
second: float = grad(grad(swing))(1.0, 20)
both: tuple[float, float] = value_and_grad(swing)(1.0, dt=0.1)


def energy(xs: Sequence[float], scale: float) -> float:
    return scale * gradwalk.sum([x * x for x in xs])


force: Sequence[float] = grad(energy)([3.0, 4.0], 2.0)
value, gradient = value_and_grad(energy)([3.0, 4.0], 2.0)
first: float = value + gradient[0]
by_scale = grad(energy, argnums=1)([3.0, 4.0], 2.0)
by_both = grad(energy, argnums=(0, 1))([3.0, 4.0], 2.0)
by_name = grad(energy, argnums="scale")([3.0, 4.0], scale=2.0)


def cube(x: Value) -> Value:
    return x**3


at_a_number: float = grad(cube)(2.0)
at_a_value: Value = grad(cube)(Value(2.0))
cubed: tuple[float, float] = value_and_grad(cube)(2.0)


def product(xs: list[Value]) -> Value:
    return xs[0] * xs[1].exp()


slopes: list[float] = grad(product)([1.0, 2.0])


def with_more(x: float) -> tuple[float, str]:
    return x * x, "besides"


slope_and_more: tuple[float, str] = grad(with_more, has_aux=True)(2.0)
all_of_it: tuple[tuple[float, str], float] = value_and_grad(with_more, has_aux=True)(2.0)


def field(x: list[float]) -> list[float]:
    return [x[0] * x[1], x[0] + x[1]]


rows: list[list[float]] = jacobian(field)([2.0, 3.0])
matrix = hessian(energy)([3.0, 4.0], 1.0)
products = (
    jvp(field)([2.0, 3.0], [1.0, 0.0]),
    vjp(field)([2.0, 3.0], [1.0, 0.0]),
    hvp(energy)([3.0, 4.0], [1.0, 0.0], 1.0),
)


@dataclass
class Spring:
    length: float
    stiffness: float


def stored(spring: Spring) -> float:
    return 0.5 * spring.stiffness * spring.length**2


by_spring: Spring = grad(stored)(Spring(1.0, 2.0))
inline = grad(lambda x: x**3)(2.0)
of_a_list = grad(lambda x: x[0] * x[1])([3.0, 4.0])
