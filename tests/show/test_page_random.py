"""Random programs: what the page shows of each is the engine's, in every mode, and no tick or cross is false.

2,000 of them with GRADWALK_SOAK, which make soak sets; a few in make test.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from py_mini_racer import MiniRacer
from random_programs import moved_by_last_digits, random_program

from gradwalk.agreement import STEPS
from gradwalk.finite_differences import finite_differences
from gradwalk.show.play import script
from gradwalk.show.program import program_of
from gradwalk.walk import MODES, walk

PROGRAMS = 2000 if "GRADWALK_SOAK" in os.environ else 40

DRIVER = """
function shown(program, modes) {
  const graph = module_graph.fromProgram(program);
  return JSON.stringify(modes.map((mode) => {
    const line = module_engine.timeline(graph, graph.nodes.map((node) => node.value), mode);
    const isLeaf = (i) => !graph.nodes[i].children.length && !graph.nodes[i].constant;
    const difference = graph.nodes.map((_, i) => (isLeaf(i) ? module_engine.finiteDifference(line, i) : null));
    const said = difference.map((each, i) => each && module_engine.judged(line.grads[i], each));
    const steps = Array.from({ length: line.steps + 1 }, (_, t) => module_engine.stepAt(line, t));
    const own = { ...graph, nodes: graph.nodes.map((node) => ({ ...node, recorded: null })) };
    return {
      grads: [...line.grads], own: [...module_engine.timeline(own, line.data, mode).grads],
      said, slopes: difference.map((each) => each?.slope), firstWrong: line.firstWrongStep,
      steps: steps.map(({ kind, node, child }) => [kind, node ?? null, child ?? null]),
    };
  }));
}
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(script("graph", "engine") + DRIVER)
        yield context


def test_gradients_and_verdicts_in_every_mode(v8: MiniRacer) -> None:
    """Gradients are the package's, to the bit; a right one gets no cross, a wrong one no tick.

    Those that the page computes all by itself, as it does after an edit, are the package's to 1e-12 of themselves. Its
    exp and sin have another last digit than C's once in a thousand times. Where the parts of a gradient cancel, or a
    difference on the way does, that is all that is left of it: more is allowed by as much as last digits can move it.
    """
    counts: Counter[str] = Counter()
    for seed in range(PROGRAMS):
        root = random_program(random.Random(seed))
        right = finished(root, "right")
        for mode, shown in zip(MODES, json.loads(v8.call("shown", program_of(root), list(MODES))), strict=True):
            walked = finished(root, mode)
            far = []
            for i, node in enumerate(walked.order):
                if node._constant:
                    continue
                ours, theirs, own = walked.grad(node), shown["grads"][i], shown["own"][i]
                assert ours == theirs, (seed, mode, i)
                if not abs(ours - own) <= 1e-12 * abs(ours):
                    far.append((i, ours, own))
                if shown["said"][i] is not None:
                    verdict = is_false(shown["said"][i], theirs, right.grad(node), shown["slopes"][i], root)
                    assert not verdict, (seed, mode, i, verdict)
                    counts[f"said {shown['said'][i]}"] += 1
                counts["compared"] += 1
            if far:
                counts["moved by last digits"] += len(far)
                allowed = last_digits(root, mode, seed)
                assert [each for each in far if abs(each[1] - each[2]) > allowed[each[0]]] == [], (seed, mode)
    print(PROGRAMS, "programs:", dict(counts))
    assert counts["said 1"] > PROGRAMS
    assert counts["said -1"] > PROGRAMS
    assert counts["said 0"] < 0.05 * counts["said 1"]
    assert counts["moved by last digits"] < 1e-4 * counts["compared"]


def test_steps_are_numbered_as_in_the_terminal(v8: MiniRacer) -> None:
    """Step 7 of the page is step 7 of `gradwalk trace`, in every mode, and so is the first wrong one."""
    for seed in range(12):
        root = random_program(random.Random(seed))
        for mode, shown in zip(MODES, json.loads(v8.call("shown", program_of(root), list(MODES))), strict=True):
            walked = walk(root, mode)
            place = {node: i for i, node in enumerate(walked.order)}
            expected = [["start", None, None]]
            expected += [["forward", i, None] for node, i in place.items() if node._children]
            for number in range(len(expected), walked.last_number + 1):
                step, which = walked.numbered(number)
                child = None if step.is_seed else place[step.shown[which].child]
                expected.append(["seed" if step.is_seed else "contribution", place[step.node], child])
            assert expected == shown["steps"]
            assert (walked.first_wrong_number or -1) == shown["firstWrong"], (seed, mode)


def finished(root: Any, mode: str) -> Any:
    walked = walk(root, mode)
    walked.seek(-1)
    return walked


def last_digits(root: Any, mode: str, seed: int) -> list[float]:
    """For each gradient, a few times the most that it moved in a few trials with other last digits."""
    exact = [finished(root, mode).grad(node) for node in root._topological_order()]
    trials = [moved_by_last_digits(root, mode, random.Random(seed + k)) for k in range(8)]
    return [4.0 * max(abs(each - grad) for each in moved) for grad, *moved in zip(exact, *trials, strict=True)]


def is_false(said: int, grad: float, right: float, slope: float, root: Any) -> str:
    """What is false about a verdict, or nothing. One that says it cannot tell is never false."""
    distance, size = abs(grad - right), max(abs(grad), abs(right))
    if said == -1 and distance <= 1e-9 * size:
        return f"a cross at {grad}, which is right"
    # a 0 where nothing moved at all may be a number that a step does not move the root's last digit with
    unseen = grad == slope == 0.0 and distance * STEPS[0] <= sys.float_info.epsilon * abs(root.data)
    return f"a tick at {grad}, which should be {right}" if said == 1 and distance > 1e-3 * size and not unseen else ""


def test_python_says_the_same() -> None:
    """The terminal's rule is the page's: no false cross on the same graphs."""
    for seed in range(12):
        root = random_program(random.Random(seed))
        walked = finished(root, "right")
        assert all(found.verdict(walked.grad(found.leaf)) >= 0 for found in finite_differences(root) or ())
