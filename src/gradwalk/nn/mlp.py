"""micrograd's multilayer perceptron: the same seed gives the same network, to the bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from gradwalk.engine import Value
from gradwalk.nn.activation import ACTIVATIONS, checked_activation
from gradwalk.nn.module import Module
from gradwalk.scopes import scope

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # how many outputs there are is a number; type checkers see it where it is the 1 of a Layer, or are told
    Out = TypeVar("Out", default=Value)
else:
    from typing import TypeVar

    Out = TypeVar("Out")


class Neuron(Module):
    """A weighted sum of the inputs plus a bias, through the activation unless `nonlin` is False."""

    def __init__(self, nin: int, nonlin: bool = True, activation: str = "relu") -> None:
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin
        self.activation = checked_activation(activation)

    def __call__(self, x: Sequence[Value | float]) -> Value:
        act = sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b)
        return ACTIVATIONS[self.activation](act) if self.nonlin else act

    def __repr__(self) -> str:
        activation = "ReLU" if self.activation == "relu" else self.activation.title().replace("_", "")
        return f"{activation if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(Module, Generic[Out]):
    """Neurons side by side over the same inputs; a single neuron's output comes without a list."""

    @overload
    def __init__(
        self: Layer[Value], nin: int, nout: Literal[1], nonlin: bool = True, activation: str = "relu"
    ) -> None: ...
    @overload
    def __init__(
        self: Layer[list[Value]], nin: int, nout: int, nonlin: bool = True, activation: str = "relu"
    ) -> None: ...
    def __init__(self, nin: int, nout: int, nonlin: bool = True, activation: str = "relu") -> None:
        self.neurons = [Neuron(nin, nonlin=nonlin, activation=activation) for _ in range(nout)]

    def __call__(self, x: Sequence[Value | float]) -> Out:
        out: Any = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(str, self.neurons))}]"


class MLP(Module, Generic[Out]):
    """Layers in sequence; all but the last are followed by the activation.

    Type checkers take the output to be a single Value, unless told: `model: MLP[list[Value]] = MLP(2, [4, 3])`.

    >>> MLP(2, [4, 1])
    MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(4)]]
    >>> MLP(2, [1, 1], activation="tanh")
    MLP of [Layer of [TanhNeuron(2)], Layer of [LinearNeuron(1)]]
    """

    def __init__(self, nin: int, nouts: Sequence[int], activation: str = "relu") -> None:
        sizes = [nin, *nouts]
        last = len(nouts) - 1
        self.layers: list[Layer[Any]] = [
            Layer(sizes[i], sizes[i + 1], nonlin=i != last, activation=activation) for i in range(len(nouts))
        ]

    def __call__(self, x: Sequence[Value | float]) -> Out:
        out: Any = x
        for i, layer in enumerate(self.layers):
            # micrograd's layers hand a single output on without its list; the next layer reads it as one input
            with scope(f"layer {i}"):
                out = layer([out] if isinstance(out, Value | float) else out)
        return out  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(str, self.layers))}]"
