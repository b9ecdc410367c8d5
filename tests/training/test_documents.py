"""Documents from files: what counts as one, how they are split, and in which order they come."""

from __future__ import annotations

import random

import pytest

from gradwalk.training import data
from gradwalk.training.tokenizer import Tokenizer, UnknownCharacterError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"emma\nolivia\n", ["emma", "olivia"]),
        (b"emma\r\nolivia\r\n", ["emma", "olivia"]),
        (b"emma\rolivia", ["emma", "olivia"]),
        (b"\xef\xbb\xbfemma\n", ["emma"]),
        (b"\n\n  \nemma\n\t\n\nolivia", ["emma", "olivia"]),
        (b"  mary ann \n", ["mary ann"]),
        ("zoé\u2028x\n".encode(), ["zoé\u2028x"]),
    ],
    ids=["plain", "CRLF", "CR", "byte order mark", "blank lines", "spaces", "other separators stay"],
)
def test_lines_are_documents(content, expected):
    """One document per line, without blank lines, line endings, a byte order mark, or white space at the ends."""
    assert expected == data.documents_in(content, "file")


def test_bundled_names():
    """Some thousands of names in the letters a to z, each once."""
    names = data.read_documents(data.BUNDLED_NAMES)
    assert len(names) == 5163
    assert len(set(names)) == len(names)
    assert set("".join(names)) == set("abcdefghijklmnopqrstuvwxyz")


def test_split_is_the_same_for_the_same_seed():
    """Split by seed: the same seed sets the same documents aside, another one others."""
    documents = [str(number) for number in range(100)]
    assert data.split(documents, 0.1, seed=1) == data.split(documents, 0.1, seed=1)
    assert data.split(documents, 0.1, seed=1) != data.split(documents, 0.1, seed=2)


@pytest.mark.parametrize(("count", "share", "set_aside"), [(100, 0.1, 10), (2, 0.01, 1), (2, 0.99, 1), (5, 0.0, 0)])
def test_split_leaves_something_on_both_sides(count, share, set_aside):
    """At least one document to train on and one to validate on, unless the share is 0."""
    documents = [str(number) for number in range(count)]
    training, validation = data.split(documents, share, seed=3)
    assert len(validation) == set_aside
    assert sorted(training + validation) == sorted(documents)


def test_the_line_that_is_no_text_is_counted_from_the_first():
    """A blank one before it, too."""
    with pytest.raises(data.DataError, match=r"f: not UTF-8 text at byte 3 \(line 2\)"):
        data.documents_in(b"\nzo\xe9\n", "f")


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_split_by_what_is_no_share(share):
    """At least one document is trained on."""
    with pytest.raises(ValueError, match=f"expected a number from 0 to below 1, got {share:g}"):
        data.split(["a", "b"], share, seed=1)


def test_name_that_no_file_can_have():
    """A null character ends it: one line, as for any other file that is not there."""
    with pytest.raises(data.DataError, match="null"):
        data.read_documents("a\0b")


def test_each_epoch_has_every_document_once():
    """Three epochs, each in an order of its own."""
    order = data.Order(10, seed=1)
    epochs = [order.take(10) for _ in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("before", [0, 3, 10, 17])
def test_restored_order_goes_on(before):
    """From a state taken anywhere, the order goes on as it would have."""
    order, other = data.Order(10, seed=1), data.Order(10, seed=2)
    order.take(before)
    other.restore(order.state())
    assert order.take(25) == other.take(25)


@pytest.mark.parametrize("taken", [0, 1, 6, 7, 30])
def test_an_order_goes_back(taken):
    """As if nothing had been taken since, in this epoch or in those after it."""
    order, other = data.Order(10, seed=1), data.Order(10, seed=1)
    order.take(4)
    other.take(4)
    mark = order.mark()
    order.take(taken)
    order.go_back(mark)
    assert other.state() == order.state()
    assert other.take(25) == order.take(25)


@pytest.mark.parametrize(("count", "shown"), [(60, 60), (61, 57)])
def test_many_characters_are_not_all_told(count, shown):
    characters = "".join(map(chr, range(200, 200 + count)))
    assert characters[:shown] + "..." * (count > 60) == Tokenizer(characters).shown()


def test_tokens_and_back():
    """Every character is a token, and decoding gives the text back."""
    tokenizer = Tokenizer.for_documents(["emma", "zoé"])
    assert tokenizer.decode(tokenizer.tokens_of("zoé")) == "zoé"
    assert tokenizer.encode("a") == [tokenizer.boundary, 0, tokenizer.boundary]


@pytest.mark.parametrize("characters", ["", "aba"])
def test_every_token_is_one_character(characters):
    with pytest.raises(ValueError, match=f"expected distinct characters, at least one, got '{characters}'"):
        Tokenizer(characters)


def test_unknown_character_is_named():
    """A character that is not in the vocabulary is named, and so are those that are."""
    with pytest.raises(UnknownCharacterError, match="'x' is not among the characters that the model knows: aem"):
        Tokenizer("aem").encode("max")


def test_python_generator_state_is_as_expected():
    """The state that checkpoints keep is that of Python's generator: 625 words, of a version that does not change."""
    version, words, _ = random.Random(1).getstate()
    assert (version, len(words)) == (random.Random.VERSION, 625)
