"""One neuron, f = relu(a·b + d), at a = 2, b = −3, d = 10: every gradient, and a check of each by nudging.

Run it with `python examples/01_one_neuron.py`; the next step is `examples/hand_written_step.py`.
"""

from gradwalk import Value

INPUTS = {"a": 2.0, "b": -3.0, "d": 10.0}


def neuron(inputs):
    """Every node of the expression by its name, in the order in which it is computed."""
    a, b, d = (Value(data, label=name) for name, data in inputs.items())
    c = a * b
    e = c + d
    f = e.relu()
    c.label, e.label, f.label = "c", "e", "f"
    return {node.label: node for node in (a, b, c, d, e, f)}


nodes = neuron(INPUTS)
nodes["f"].backward()  # f.grad = 1; from there on each node adds local_grad · grad to each of its children

print("node  made from     data    grad")
print("────  ─────────   ──────  ──────")
for name, node in nodes.items():
    made_from = f" {node._op} ".join(child.label for child in node._children)
    made_from = f"{node._op}({made_from})" if len(node._children) == 1 else made_from
    print(f"{name:<4}  {made_from:<9}   {node.data:>6g}  {node.grad:>6g}")

# What a gradient means: nudge one input by ±h, leave the others alone, and see how far the output moves.
h = 1e-6
print("\nleaf    grad   (f(x + h) − f(x − h)) / 2h")
print("────  ──────   ──────────────────────────")
for name, x in INPUTS.items():
    rise = neuron({**INPUTS, name: x + h})["f"].data - neuron({**INPUTS, name: x - h})["f"].data
    grad, slope = nodes[name].grad, rise / (2 * h)
    print(f"{name:<4}  {grad:>6g}   {slope:>15.6f}  {'agrees' if abs(slope - grad) < 1e-6 else 'DIFFERS'}")
