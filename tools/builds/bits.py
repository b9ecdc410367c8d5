"""Fixed programs and their numbers to the bit, here and under another Python: `bits.py .venv-arm64/bin/python`.

Both run with GRADWALK_KERNELS=baseline, which promises the same bits on every kind of processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gradwalk
from gradwalk import _native, control, engine
from gradwalk.ops import OPS
from gradwalk.optim import Adam

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/compiler"))
import models


def numbers() -> dict[str, list[str]]:
    """What is computed, and the digits of all of it."""
    found = {}
    for name, op in OPS.items():
        points = [point if isinstance(point, tuple) else (point,) for point in op.samples]
        rows = list(zip(*points, strict=True))[: len(op.inputs)]
        parameters = points[0][len(op.inputs) :]
        columns = list(zip(*([*row] * 3 for row in rows), strict=True))  # enough for whole vectors and a rest
        function = engine.FUNCTIONS[name]
        with control.ieee():
            total = gradwalk.compile(lambda columns, f=function, p=parameters: [f(*entry, *p) for entry in columns])
            values = [[gradwalk.Value(x) for x in entry] for entry in columns]
            outs = [function(*entry, *parameters) for entry in values]
            found[f"{name}, entry by entry"] = gradients(outs, values)
            found[f"{name}, compiled"] = gradients(total(values), values)
    for name, make in models.MODELS.items():
        function, args, leaves = make()
        compiled = gradwalk.compile(function)
        if not leaves:
            found[f"{name}, entry by entry"] = digits(gradwalk.value_and_grad(function)(*args))
            found[f"{name}, compiled"] = digits(compiled.value_and_grad(*args))
            continue
        found[f"{name}, entry by entry"] = gradients([function(*args)], [leaves])
        found[f"{name}, compiled"] = gradients([compiled(*args)], [leaves])
        found[f"{name}, batch"] = digits(compiled.map_backward([args if len(args) > 1 else args[0]] * 9))
        found[f"{name}, gradients of a batch"] = digits([leaf.grad for leaf in leaves])
        optimiser = Adam(leaves, lr=0.01)
        found[f"{name}, training"] = digits([compiled.train_step(optimiser, *args) for _ in range(20)])
        found[f"{name}, trained"] = digits([leaf.data for leaf in leaves])
    return found


def gradients(outs: list[gradwalk.Value], leaves: list[list[gradwalk.Value]]) -> list[str]:
    """Of the sum of the results, with the results themselves."""
    every = [leaf for row in leaves for leaf in row]
    for leaf in every:
        leaf.grad = 0.0
    for out in outs:
        out.backward()
    return digits([out.data for out in outs] + [leaf.grad for leaf in every])


def digits(nested: object) -> list[str]:
    if isinstance(nested, (list, tuple)):
        return [text for part in nested for text in digits(part)]
    return [float(nested).hex()]  # type: ignore[arg-type]


if __name__ == "__main__":
    assert _native.KERNELS == "baseline", "GRADWALK_KERNELS=baseline has to be set"
    here = numbers()
    if not sys.argv[1:]:
        print(json.dumps(here))
        sys.exit()
    done = subprocess.run([sys.argv[1], __file__], env=os.environ, stdout=subprocess.PIPE, text=True, check=True)
    there = json.loads(done.stdout)
    assert here.keys() == there.keys()
    differ = {what: sum(a != b for a, b in zip(here[what], there[what], strict=True)) for what in here}
    for what, count in differ.items():
        if count:
            print(f"{what}: {count} of {len(here[what])} numbers differ")
    print(f"{sum(map(len, here.values()))} numbers, {sum(differ.values())} differ")
    sys.exit(any(differ.values()))
