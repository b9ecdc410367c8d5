"""Gradient descent by hand: forward, zero_grad, backward, and `p.data -= lr * p.grad`. No optimizer.

Run it with `python examples/hand_written_step.py`; a whole language model in the same style is `scalar_gpt.py`.
"""

import random

from gradwalk.nn import MLP

SAMPLES = [([2.0, 3.0], 1.0), ([3.0, -1.0], -1.0), ([-1.0, -2.0], 0.5)]  # inputs and the output wanted for them


def train(steps=20, learning_rate=0.01, seed=1):
    """The loss before each step."""
    random.seed(seed)  # the network draws its weights from Python's own generator
    model = MLP(2, [4, 4, 1])
    losses = []
    for _ in range(steps):
        # forward: the squared distance from what was wanted, summed over the samples
        loss = sum((model(inputs) - wanted) ** 2 for inputs, wanted in SAMPLES)
        losses.append(loss.data)

        # backward: leaves add up what they receive, so what the last step left has to go first
        model.zero_grad()
        loss.backward()

        # update: against the gradient, because the gradient points to where the loss grows
        for p in model.parameters():
            p.data -= learning_rate * p.grad
    return losses


if __name__ == "__main__":
    for step, loss in enumerate(train(), 1):
        print(f"step {step:>2}  loss {loss:.6f}")
