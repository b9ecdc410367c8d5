"""micrograd's Neuron, Layer and MLP: the numbers below were printed by micrograd 0.1.0."""

from __future__ import annotations

import random

import pytest

from gradwalk.nn import MLP, Layer, Neuron

INPUTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
WANTED = [1.0, -1.0, -1.0, 1.0]

# with random.seed(1337) and MLP(3, [4, 4, 1])
INITIAL = [
    0.23550571390294128, 0.06653114721000164, -0.26830328150124894, 0, 0.1715747078045431, -0.6686254326224383,
    0.6487474938152629, 0, -0.23259038277158273, 0.5792256498313748, 0.8434530197925192, 0, -0.3847332240409951,
    0.9844941451716409, -0.5901079958448365, 0, 0.31255526637777775, 0.8246106857787521, -0.7814232047574572,
    0.6408752595662697, 0, -0.20252189189007108, -0.8693137391598071, 0.39841666323128555, -0.3037961142013801, 0,
    -0.19282493884310759, 0.6032250931493106, 0.6001302646227185, 0.32749776568749045, 0, 0.6650130652363544,
    0.1889136153241595, -0.07813264062433589, 0.9151267732861252, 0, 0.5914405264235476, -0.3725442040076463,
    0.3810827422406471, 0.8301999957053683, 0,
]  # fmt: skip
OUTPUTS = [4.000271647734554, 1.6539934680939266, 0.268518064900208, 1.8818997132161885]
LOSSES = [18.432196474034008, 8.70539077176091, 4.462660471200248]
AFTER_THREE_STEPS = [
    -0.7493764130885623, -0.41307241173779347, -0.09877525394704748, -0.4336545610504035, -0.5697078241045365,
    -0.5266915689091816, 0.4425744444860734, -0.32220868701000493, -0.24092801500153901, 0.5832855581226906,
    0.859314065318462, -0.02560929997651385, -1.3176673112293553, -0.39083000281483016, -0.22612648677494557,
    -0.6171065437106087, 0.03679946942799228, 0.5879464808235132, -0.8575561523746897, 0.08654936554476544,
    -0.38657527672812564, -0.20252189189007108, -0.8661989982644626, 0.2746529453150393, -0.2942490940435064,
    -0.11884730744625849, -0.37050260987764944, 0.4475491695559143, 0.3774691655529313, -0.039436747127562954,
    -0.3584463891551348, 0.2779370174927183, -0.15023097657932982, -0.3225781455830959, 0.11574911274950406,
    -0.6479447705034799, -0.38432361626836387, -0.19890505927703842, -0.13105776977212893, -0.41517749362833944,
    -0.21230886010343353,
]  # fmt: skip


@pytest.fixture
def model() -> MLP:
    random.seed(1337)
    return MLP(3, [4, 4, 1])


def test_same_seed_same_network(model: MLP) -> None:
    """The same seed gives micrograd's parameters in micrograd's order, and its outputs, to the bit."""
    assert [parameter.data for parameter in model.parameters()] == INITIAL
    assert [model(x).data for x in INPUTS] == OUTPUTS


def test_same_training(model: MLP) -> None:
    """Three steps by hand give micrograd's losses and weights.

    Not to the bit: micrograd walks a set of children, so its own last digits change from run to run.
    """
    losses = []
    for _ in range(3):
        loss = sum((model(x) - y) ** 2 for x, y in zip(INPUTS, WANTED, strict=True))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad
        losses.append(loss.data)
    assert losses == pytest.approx(LOSSES, rel=1e-13)
    assert [p.data for p in model.parameters()] == pytest.approx(AFTER_THREE_STEPS, rel=1e-12)


def test_reprs(model: MLP) -> None:
    """The reprs are micrograd's; another activation shows its name."""
    assert repr(model) == (
        "MLP of [Layer of [ReLUNeuron(3), ReLUNeuron(3), ReLUNeuron(3), ReLUNeuron(3)], "
        "Layer of [ReLUNeuron(4), ReLUNeuron(4), ReLUNeuron(4), ReLUNeuron(4)], Layer of [LinearNeuron(4)]]"
    )
    assert repr(Neuron(2, nonlin=False)) == "LinearNeuron(2)"
    assert repr(Neuron(2)) == "ReLUNeuron(2)"
    assert repr(Layer(1, 2, activation="leaky_relu")) == "Layer of [LeakyReluNeuron(1), LeakyReluNeuron(1)]"


@pytest.mark.parametrize("activation", ["tanh", "gelu", "silu", "leaky_relu", "relu_squared"])
def test_activations(activation: str) -> None:
    """The hidden layers use the activation, the last layer none; the same seed draws the same weights."""
    random.seed(1337)
    other = MLP(3, [4, 4, 1], activation=activation)
    assert [parameter.data for parameter in other.parameters()] == INITIAL
    neuron = other.layers[0].neurons[0]
    raw = sum(w.data * x for w, x in zip(neuron.w, INPUTS[0], strict=True))
    by_hand = max(raw, 0.0) ** 2 if activation == "relu_squared" else getattr(raw * (neuron.b + 1.0), activation)().data
    assert neuron(INPUTS[0]).data == pytest.approx(by_hand, rel=1e-13)
    assert not other.layers[-1].neurons[0].nonlin


@pytest.mark.parametrize("name", ["tanhh", "add", "maximum", "pow_number", "clamp", "softmax", ""])
def test_unknown_activations(name: str) -> None:
    """What is no operation on one number is refused, with the names to choose from."""
    with pytest.raises(ValueError, match=rf"activation: expected one of .*relu.*tanh.*, got '{name}'"):
        MLP(2, [2, 1], activation=name)


def test_wrong_number_of_inputs(model: MLP) -> None:
    """micrograd ignores inputs too many; here they are an error."""
    with pytest.raises(ValueError, match="argument 2 is longer"):
        model([1.0, 2.0, 3.0, 4.0])
