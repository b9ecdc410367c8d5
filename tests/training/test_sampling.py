"""Samples: the same for the same seed, within the block, and by the settings given."""

from __future__ import annotations

import json
import random

import pytest
from small_runs import NAMES

from gradwalk.training.sampling import chosen


@pytest.fixture
def sample(train, gradwalk):
    train("--steps", 50, "--checkpoint", "run")
    return lambda *arguments: gradwalk("sample", "run", *arguments).out.splitlines()


def test_seed_decides(sample):
    """The same seed gives the same documents, another one others."""
    assert sample("--seed", 3) == sample("--seed", 3)
    assert sample("--seed", 3) != sample("--seed", 4)


def test_command_that_is_printed_gives_the_samples_that_were_shown(train, gradwalk):
    """`gradwalk sample CHECKPOINT` begins with what `gradwalk train` made up at the end."""
    shown = json.loads(train("--steps", 20, "--checkpoint", "run", "--json").out)["samples"]
    assert gradwalk("sample", "run").out.splitlines() == shown


def test_documents_are_made_of_known_characters(sample):
    """Twenty unless told otherwise, none longer than the block, in the letters of the training data."""
    documents = sample()
    assert len(documents) == 20
    assert set("".join(documents)) <= set("".join(NAMES))
    assert max(map(len, documents)) <= 4


def test_prompt_comes_first(sample):
    """Every document begins with the prompt."""
    assert all(document.startswith("ka") for document in sample("--prompt", "ka", "-n", 5))


def test_greedy(sample):
    """At temperature 0, and among the one likeliest, all documents are the same one."""
    assert set(sample("--temperature", 0)) == set(sample("--top-k", 1))
    assert len(set(sample("--top-k", 1))) == 1


def test_json_list(train, gradwalk):
    """--json prints a list."""
    train("--steps", 1, "--checkpoint", "run")
    assert len(json.loads(gradwalk("sample", "run", "-n", 2, "--json").out)) == 2


def test_top_k_keeps_the_likeliest():
    """Only the k tokens with the largest logits are drawn, and all of those."""
    rng = random.Random(1)
    assert {chosen([0.0, 3.0, 1.0, 2.9], rng, temperature=1.0, top_k=2) for _ in range(200)} == {1, 3}


def test_temperature_is_a_scale():
    """A token drawn at temperature T is drawn as at temperature 1 from logits divided by T."""
    logits = [0.3, -1.2, 2.0]
    hot = [chosen(logits, random.Random(seed), temperature=4.0) for seed in range(50)]
    assert hot == [
        chosen([logit / 4.0 for logit in logits], random.Random(seed), temperature=1.0) for seed in range(50)
    ]


def test_extreme_logits():
    """Very large logits and a very small temperature overflow nothing."""
    assert chosen([1e300, -1e300, 0.0], random.Random(1), temperature=1e-300) == 0
