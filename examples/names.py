"""The library's GPT learns first names and makes up new ones: model, optimiser and schedule from gradwalk.

Run it with `python examples/names.py [NAMES_FILE]`; the same model without the library's is `scalar_gpt.py`.
"""

import random
import sys
from pathlib import Path

from gradwalk import softmax
from gradwalk.nn import GPT
from gradwalk.optim import Adam, linear

NAMES = """ada alan alice amara anna anton ariel astrid ben bruno camille carla clara daniel diego dora edith elena
elias emil emma felix fiona frida greta hannah helena henry hugo ida ines iris isabel jakob jonas julia karin laura
leon linus lucia maja marta matteo mira nadia nina noah olga oscar paul petra rosa sofia theo thomas vera viktor"""


def train(names, steps=100, seed=42, report=None):
    """The trained model, and its letters; the token after the last letter's says that a name begins or ends."""
    letters = sorted(set("".join(names)))
    boundary = len(letters)
    rng = random.Random(seed)
    model = GPT(vocab_size=len(letters) + 1, rng=rng)
    optimiser, rate = Adam(model.parameters()), linear(steps)
    for step in range(steps):
        loss = model.loss([boundary, *map(letters.index, rng.choice(names)), boundary])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step(optimiser.lr * rate(step))
        if report:
            report(step, loss.data)
    return model, letters


def sampled(model, letters, rng, temperature=0.5):
    """A name, letter by letter; a frozen model computes with plain floats and records nothing."""
    cache, token, name = model.cache(), len(letters), ""
    for position in range(model.block_size):
        logits = model.step(token, position, cache)
        [token] = rng.choices(range(len(logits)), softmax([logit / temperature for logit in logits]))
        if token == len(letters):
            break
        name += letters[token]
    return name


def main():
    names = (Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else NAMES).split()

    def report(step, loss):
        if step % 10 == 9:
            print(f"step {step + 1:>3}  loss {loss:.4f}")

    model, letters = train(names, report=report)
    frozen, rng = model.frozen(), random.Random(1)
    print("made up:", ", ".join(sampled(frozen, letters, rng) for _ in range(10)))


if __name__ == "__main__":
    main()
