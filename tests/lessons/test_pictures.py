"""The pictures of the README and the start page are made by what they show."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradwalk import Value
from gradwalk.graph import Graph, short_number
from gradwalk.show import svg

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import pictures


@pytest.mark.parametrize("is_tall", [False, True])
def test_the_walk_is_the_one_that_is_drawn_now(is_tall: bool) -> None:
    """After a change that is meant: python tools/pictures.py."""
    name = "walk-tall.svg" if is_tall else "walk.svg"
    assert (pictures.ASSETS / name).read_text(encoding="utf-8") == pictures.walk(is_tall)


@pytest.mark.parametrize("name", ["walk", "training"])
def test_tall_pictures_fit_a_phone(name: str) -> None:
    """At their own size, so that what is written in them can be read."""
    picture = ElementTree.parse(pictures.ASSETS / f"{name}-tall.svg").getroot()
    assert float(picture.get("width", "inf")) <= 340
    assert float(picture.get("height", 0)) >= float(picture.get("width", 0))


@pytest.mark.parametrize("name", ["walk", "walk-tall", "training", "training-tall"])
def test_pictures_are_whole_and_know_the_dark(name: str) -> None:
    """Well-formed, with colours for both, and nothing in them from elsewhere."""
    text = (pictures.ASSETS / f"{name}.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_moving_picture_ends_at_the_gradients() -> None:
    """The last number of each node is what backward() gives; the partial sums before it are there, too."""
    x = Value(2.0, label="x")
    root = x * x + x
    text = svg.moving_picture(root)
    root.backward()
    numbers = [element.text for element in ElementTree.fromstring(text).iter() if "grad" in element.get("class", "")]
    assert short_number(x.grad) in numbers
    assert "1" in numbers


def test_a_gradient_grows_as_it_is_handed_on() -> None:
    """A number from each step on, until the next one; two in one step are one; whatever gradients there were before."""
    x = Value(2.0, label="x")
    root = (x * x + x) * x
    text = svg.moving_picture(root)
    pattern = r"<text class='number grad (b[\d-]+)' x='\d+' y='53'>(.*?)</text>"
    # three are computed, then the seed, then root, the sum and the product hand on
    assert re.findall(pattern, text) == [
        ("b5-6", "6"), ("b6-7", "8"), ("b7", "16"), ("b6", "2"), ("b5", "2"), ("b4", "1"),
    ]  # fmt: skip
    root.backward()
    assert text == svg.moving_picture(root)


@pytest.mark.parametrize("is_tall", [False, True])
def test_boxes_do_not_overlap(is_tall: bool) -> None:
    """In a graph with long edges and shared nodes no two cards touch."""
    x = Value(2.0, label="x")
    u = x * x
    root = (u + u * u * x).tanh() + x
    drawing = svg._Drawing(Graph(root).view(), is_tall=is_tall)
    boxes = drawing.layout.boxes
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_labels_are_text() -> None:
    """Whatever a label is, it is words in the picture."""
    text = svg.picture(Graph(Value(1.0, label="<script>&'\"") * 2.0).view())
    names = [element.text for element in ElementTree.fromstring(text).iter() if element.get("class") == "name"]
    assert "<script>&'\"" in names
