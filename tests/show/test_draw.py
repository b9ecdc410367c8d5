"""Pictures: every format and theme, bounded whatever the graph, and labels that stay text."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from functools import reduce
from pathlib import Path

import pytest

import gradwalk
from gradwalk import Value, scope
from gradwalk.graph import Graph
from gradwalk.nn import MLP
from gradwalk.show.dot import MOST_DRAWN, THEMES, rendered, source, without_font_warnings
from gradwalk.show.notebook import WIDEST
from gradwalk.show.svg import picture

pytest.importorskip("pygraphviz")
HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "</TABLE>", "\\N\\G", "a\\",
    "\x00\x1b[2J", "]]>", "ünï 中文 🙂", 'x" URL="javascript:alert(1)', "<!--", "a\nb",
]  # fmt: skip


def neuron(engine, label="a"):
    a, b, d = (engine.Value(x, label=name) for x, name in ((2.0, label), (-3.0, "b"), (10.0, "d")))
    root = (a * b + d).relu()
    root.backward()
    return root


def texts(svg):
    """Everything that an SVG shows, or says when pointed at."""
    tree = ElementTree.fromstring(svg)
    return [element.text or "" for element in tree.iter() if element.tag.endswith(("}text", "}title"))]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ending", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_every_format(engine, tmp_path, theme, ending, magic):
    """The ending of the file chooses the format; without a file, `format` does, and the picture is handed back."""
    path = tmp_path / f"picture.{ending}"
    neuron(engine).draw(path, theme=theme)
    assert path.read_bytes().startswith(magic)
    assert neuron(engine).draw(theme=theme, format=ending.upper()).startswith(magic)


def test_nodes_and_edges_are_labelled(engine):
    """Label, operation, data and gradient on the nodes, the local gradient on the edges."""
    shown = [text.strip() for text in texts(str(neuron(engine).draw()))]
    assert {"a", "b", "d", "×", "+", "relu", "-6", "10", "v1"} <= set(shown)
    assert shown.count("-3") == 3  # b, the gradient of a, and the local gradient on the edge to a


def test_without_a_path_it_shows_itself(engine):
    """draw() gives a notebook something to show."""
    assert neuron(engine).draw()._repr_mimebundle_()["image/svg+xml"].startswith("<?xml")


def test_operations_are_called_as_on_the_page(engine):
    """By what stands on its cards, in both kinds of pictures."""
    x = engine.Value(0.5, label="x")
    view = Graph(-(x**2) + (x**-1).log() + x.sigmoid() + x.relu()).view()
    for svg in (rendered(source(view), "svg").decode(), picture(view)):
        assert {"−x", "x²", "x⁻¹", "log", "sigmoid", "relu", "+"} <= {text.strip() for text in texts(svg)}


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_are_text(engine, label):
    """A label runs nothing and ends no element: the picture is well-formed, and has no element of its own."""
    with scope(label):
        root = neuron(engine, label)
    root.label = label
    svg = str(root.draw())
    tags = {element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "style", "g", "title", "text", "path", "polygon", "ellipse", "polyline", "a"}
    attributes = {name for element in ElementTree.fromstring(svg).iter() for name in element.attrib}
    assert not any(name.startswith("on") or name.endswith("href") for name in attributes)


def test_a_hostile_label_is_still_readable(engine):
    """Markup in a label is shown letter by letter."""
    assert "<b>&amp;</b>" in [text.strip() for text in texts(str(neuron(engine, "<b>&amp;</b>").draw()))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"path": "x.gif"}, "ends in svg, png, pdf, got 'x.gif'"),
        ({"format": "gif"}, "a format of svg, png, pdf, got 'gif'"),
        ({"path": "x.svg", "theme": "sepia"}, "a theme of light, dark; got 'sepia'"),
        ({"path": "x.svg", "direction": "up"}, "a direction of LR, RL, TB, BT; got 'up'"),
    ],
)
def test_bad_options_are_refused(engine, options, expected):
    """The error has what was expected."""
    with pytest.raises(ValueError, match=expected):
        neuron(engine).draw(**options)


def test_scopes_are_frames(engine):
    """In a small graph a scope is a frame with its name; a plain number is drawn with what uses it."""
    with scope("layer"):
        root = engine.Value(1.0, label="x") * 3.0
    dot = source(Graph(root).view())
    frame = dot[dot.index("subgraph cluster") :]
    assert 'label="layer"' in frame
    assert frame.index('label="3"') < frame.index("}")


def test_scopes_in_a_scope_share_its_frame(engine):
    """One frame with two in it."""
    with scope("outer"):
        with scope("one"):
            x = engine.Value(1.0, label="x").tanh()
        with scope("two"):
            root = x.exp()
    dot = source(Graph(root).view())
    assert re.findall(r'subgraph .*? label="(\w+)"', dot) == ["outer", "one", "two"]
    assert [line.count("}") - line.count("{") for line in dot.splitlines() if "subgraph" in line or line == "  }"] == [
        -1, -1, 1, -1, 1, 1,
    ]  # fmt: skip


def test_only_font_warnings_are_kept_off_stderr(capfd):
    """Whatever else is said there while Graphviz draws is said."""
    with without_font_warnings():
        os.write(2, b"Fontconfig warning: no settings\nout of paper\n")
    assert capfd.readouterr().err == "out of paper\n"


# ---------------------------------------------------------------- large graphs


def gpt_loss(value):
    """The loss of the example's GPT over eight positions: some 68,000 nodes."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    try:
        import scalar_gpt
    finally:
        sys.path.pop(0)
    parameters = scalar_gpt.initial_parameters(random.Random(1), value)
    return scalar_gpt.loss_of(parameters, scalar_gpt.tokens_of("isabella"))


@pytest.mark.unsanitized
def test_a_gpt_is_drawn_in_time(native):
    """A loss of over 60,000 nodes is drawn in under 3 s, all of it, folded by its repetitions."""
    loss = gpt_loss(native.Value)
    assert len(Graph(loss)) > 60_000
    began = time.process_time()
    svg = str(loss.draw())
    assert time.process_time() - began < 3.0
    assert any(text.strip().startswith("68,403 nodes, shown as") for text in texts(svg))


def test_what_is_drawn_is_bounded(engine):
    """A graph without scopes or repetitions is cut to what is near the root, and says so."""
    rng = random.Random(0)
    nodes = [engine.Value(0.1, label=f"x{i}") for i in range(30)]
    for _ in range(3000):
        nodes.append(rng.choice(nodes[-60:]) * rng.choice(nodes[-60:]))
    graph = Graph(nodes[-1])
    assert len(graph) > MOST_DRAWN
    dot = source(graph.overview(MOST_DRAWN))
    assert dot.count("tooltip=") <= MOST_DRAWN
    assert "further from the result are not shown" in dot


def test_a_folded_scope_says_what_is_in_it(engine):
    """Its nodes, and of which operations there are most."""
    x = engine.Value(0.5)
    with scope("layer"):
        y = x
        for i in range(400):
            y = (y * x + x).tanh() if i % 4 == 0 else y + x * 2.0 if i % 4 < 3 else y - x
    dot = source(Graph(y * 2.0).overview(40))
    (told,) = re.findall(r"<B>layer</B><BR/><FONT[^>]*>([^<]*)</FONT>", dot)
    assert [part.strip() for part in told.split("   ")][1:] == ["× 300", "+ 300", "tanh 100"]


def test_long_graphs_run_downwards(engine):
    """A chain that does not fit the width is drawn from top to bottom."""
    root = engine.Value(1.0)
    short = source(Graph(root.tanh()).view())
    for _ in range(30):
        root = root.tanh()
    assert ("rankdir=LR" in short, "rankdir=TB" in source(Graph(root).view())) == (True, True)


# ---------------------------------------------------------------- notebooks


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda: MLP(3, [4, 1])([1.0, 2.0, 3.0]), id="mlp"),
        pytest.param(lambda: gradwalk.sum([Value(float(i)) * 2.0 for i in range(40)]), id="wide"),
        pytest.param(lambda: reduce(lambda x, _: x * 1.01 + 0.1, range(60), Value(1.0)), id="long"),
        pytest.param(lambda: gradwalk.tanh(Value(1.0) * Value(2.0) + Value(3.0)), id="small"),
    ],
)
def test_a_picture_fits_the_cell(value):
    """Whatever its shape, a picture is no wider than a notebook's cell, and its letters keep their size."""
    picture = value()._repr_mimebundle_()["image/svg+xml"]
    sizes = (r'width="([\d.]+)pt"', r'viewBox="0.00 0.00 ([\d.]+)')
    width, box = (float(re.search(pattern, picture)[1]) for pattern in sizes)
    assert width * 96 / 72 <= WIDEST
    assert width / box > 0.9


def test_a_picture_that_cannot_fit_is_scaled():
    """Names so long that twelve boxes are too wide both ways: all of it is seen, smaller."""
    root = Value(1.0, label="W" * 28)
    for letter in "ABCD":
        root = gradwalk.sum([root, *(Value(1.0, label=f"{letter}{i}" + "W" * 26) for i in range(3))])
        root.label = letter * 28
    picture = root._repr_mimebundle_()["image/svg+xml"]
    size = r'width="([\d.]+)pt" height="([\d.]+)pt"\s+viewBox="0.00 0.00 ([\d.]+) ([\d.]+)"'
    width, height, box_width, box_height = map(float, re.search(size, picture).groups())
    assert (width * 96 / 72, box_width > width) == (WIDEST, True)
    assert height / width == pytest.approx(box_height / box_width, rel=0.01)


def test_a_picture_that_fails_leaves_the_text(engine, monkeypatch):
    """Showing a number does not fail with its picture."""
    monkeypatch.setattr("gradwalk.show.dot.graphviz", lambda: 1 / 0)
    root = neuron(engine)
    assert root._repr_mimebundle_() == {"text/plain": repr(root)}


def test_without_graphviz_folds_are_cards():
    """With their title, and how many nodes are in them."""
    shown = texts(picture(Graph(MLP(3, [4, 4, 1])([1.0, 2.0, 3.0])).overview(12)))
    assert {"layer 0", "layer 1", "layer 2", "nodes", "56", "12"} <= set(shown)


def test_a_notebook_gets_picture_and_text(engine):
    """A Value shows itself as SVG, with its repr beside it for where there are no pictures."""
    root = neuron(engine)
    bundle = root._repr_mimebundle_()
    assert bundle["text/plain"] == repr(root)
    assert "relu" in "".join(texts(bundle["image/svg+xml"]))


def test_the_picture_has_the_theme_of_the_notebook(engine, browser, tmp_path):
    """Whatever the system's; one whose theme was chosen keeps it."""
    both = [neuron(engine)._repr_mimebundle_()["text/html"], neuron(engine).draw()._repr_mimebundle_()["text/html"]]
    shown = "".join(f"<body data-jp-theme-light={light}>{''.join(both)}" for light in ("false",))
    tab = browser.open()
    colour = (
        "Promise.all([...document.images].map(async (image) => { await image.decode();"
        " const canvas = new OffscreenCanvas(9, 9).getContext('2d'); canvas.drawImage(image, 0, 0);"
        " return canvas.getImageData(4, 4, 1, 1).data[0]; }))"
    )
    tab.show(f"<!doctype html>{shown}", tmp_path)
    dark = int(THEMES["dark"].paper[1:3], 16)
    assert tab.run(colour) == [dark, dark]
    tab.run("document.body.dataset.jpThemeLight = 'true'")
    tab.settle()
    assert tab.run(colour) == [255, 255]
    tab.close()
    assert "prefers-color-scheme" not in neuron(engine).draw(theme="light").svg
    assert len(set(vars(THEMES["light"]).values())) == len(vars(THEMES["light"]))


def test_ipython_shows_the_picture(engine):
    """IPython's own formatter finds it."""
    formatters = pytest.importorskip("IPython.core.formatters")
    bundle, _ = formatters.DisplayFormatter().format(neuron(engine))
    assert {"image/svg+xml", "text/plain"} <= set(bundle)


WITHOUT_PYGRAPHVIZ = """
import sys
sys.modules["pygraphviz"] = None
import gradwalk, gradwalk.show
value = gradwalk.Value(2.0) * 3.0
print(sorted(value._repr_mimebundle_()))
try:
    value.draw("x.svg")
except ImportError as error:
    print(error)
"""


def test_without_pygraphviz():
    """A notebook shows the picture of svg.py; draw() says what to install."""
    run = subprocess.run([sys.executable, "-c", WITHOUT_PYGRAPHVIZ], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "['image/svg+xml', 'text/html', 'text/plain']\n"
        "draw: expected pygraphviz to be installed; pip install 'gradwalk[draw]'\n"
    )


def test_showing_is_not_imported_before_it_is_used():
    """`import gradwalk.show` loads neither rich nor pygraphviz."""
    program = (
        "import sys, gradwalk.show; print([m for m in ('rich', 'pygraphviz', 'numpy', 'click') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
