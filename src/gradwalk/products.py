"""Products of a derivative with directions: jvp, vjp, hvp, without the matrix.

What they run is in `functional.py`.
"""

from __future__ import annotations

from typing import Any

from gradwalk.functional import (
    CALLS,
    Argnums,
    Function,
    Recording,
    Replayed,
    checked,
    places_of,
    run_of,
)
from gradwalk.structure import all_plain, flatten_like, is_value, only_type


class Products:
    """Products of one function's derivative with directions; the direction is the second argument, as SciPy has it.

    `at` runs the function once, and gives a function of the direction alone.
    """

    def __init__(self, what: str, f: Function, argnums: Argnums, forward: bool, order: int = 1) -> None:
        self._what, self._f, self._argnums, self._forward = what, checked(what, f, argnums), argnums, forward
        self._order = order  # 2: of the function's gradient
        self._replayed = f if isinstance(f, Replayed) and order == 2 and argnums == 0 else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            call = self._what + CALLS[self._what]
            got = "only one of them" if args else "neither"
            raise TypeError(f"{self._what}: expected a point and a direction, {call}, got {got}")
        x, direction, *rest = args
        if self._replayed is not None and not rest and not kwargs:
            made = self._replayed.product_at(x, direction)
            if made is not None:
                return made
        return self.at(x, *rest, **kwargs)(direction)

    def at(self, *args: Any, **kwargs: Any) -> Function:
        """The product at this point, for any direction.

        >>> times = hvp(lambda x: x[0] ** 2 * x[1]).at([3.0, 5.0])
        >>> times([1.0, 0.0]), times([0.0, 1.0])
        ([10.0, 6.0], [6.0, 0.0])
        """
        places = places_of(self._what, self._f, args, kwargs, self._argnums)
        if len(set(places)) < len(places):
            raise ValueError(f"{self._what}: expected each argument once in argnums, got {self._argnums!r}")
        run = run_of(self._what, self._f, args, kwargs, self._argnums, self._order, forward=self._forward)
        outputs = run.all_outputs()
        quick = getattr(run, "quick_product", None)

        def product(direction: Any) -> Any:
            made = quick(direction) if quick is not None else None
            if made is not None:
                return made
            try:
                numbers = flatten_like(run.structure if self._forward else outputs, direction)
            except (TypeError, ValueError) as error:
                of = "argument" if self._forward or self._order == 2 else "result"
                raise type(error)(f"{self._what}: the direction, like the {of}: {error}") from None
            if only_type(numbers) is not float:
                numbers = [number if is_value(number) else float(number) for number in numbers]
            if not isinstance(run, Recording) and not all_plain(numbers):  # programs give numbers only
                plain = Products(self._what, self._f.function, self._argnums, self._forward, self._order)  # type: ignore[attr-defined]
                return plain.at(*args, **kwargs)(direction)
            return outputs.fill(run.forward(numbers)) if self._forward else run.structure.fill(run.backward(numbers))

        return product


def jvp(f: Function, argnums: Argnums = 0) -> Products:
    """`jvp(f)(x, v)`: the Jacobian times v, in f's structure, by one sweep forward.

    >>> jvp(lambda x: [x[0] * x[1], x[0]])([2.0, 3.0], [1.0, 10.0])
    [23.0, 1.0]
    """
    return Products("jvp", f, argnums, forward=True)


def vjp(f: Function, argnums: Argnums = 0) -> Products:
    """`vjp(f)(x, u)`: u times the Jacobian, in the argument's structure, by one pass backward.

    >>> vjp(lambda x: [x[0] * x[1], x[0]])([2.0, 3.0], [1.0, 10.0])
    [13.0, 2.0]
    """
    return Products("vjp", f, argnums, forward=False)


def hvp(f: Function, argnums: Argnums = 0) -> Products:
    """`hvp(f)(x, p)`: the Hessian times p, without the Hessian; SciPy takes it as `hessp`.

    >>> hvp(lambda x: x[0] ** 2 * x[1])([3.0, 5.0], [1.0, 0.0])
    [10.0, 6.0]
    """
    return Products("hvp", f, argnums, forward=False, order=2)  # the Hessian is symmetric
