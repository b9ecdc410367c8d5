"""Pictures: every format and theme, bounded whatever the graph, and labels that stay text."""

from __future__ import annotations

import html
import os
import random
import re
import subprocess
import sys
import time
import warnings
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
from gradwalk.show.svg import _Drawing, picture

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


def test_a_frame_has_what_was_made_in_its_scope(engine):
    """And a plain number that is used there; neither what that is made of nor what uses it."""
    x = engine.Value(1.0, label="x")
    with scope("layer"):
        inside = x * 3.0
    inside.label = "inside"
    root = inside.tanh() + 5.0
    root.label = "root"
    dot = source(Graph(root).view())
    frame = dot[dot.index("subgraph cluster") :]
    inner = frame[: frame.index("\n  }")]
    assert re.findall(r'tooltip="(\w+)"|label="(\d)"', inner) == [("", "3"), ("inside", "")]


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


# ---------------------------------------------------------------- what is in a picture


def boxes(dot):
    """Of each box of Graphviz source: its name, colours and border, and the other words in it."""
    found = {}
    for line in dot.splitlines():
        if " -> " in line or not re.match(r"  n\d+ \[", line):
            continue
        words = [html.unescape(each.strip()) for each in re.findall(r">([^<>]*[^<> ][^<>]*)<", line)]
        kept = dict(re.findall(r'(fillcolor|color|penwidth|peripheries)="?([^",\]]+)', line))
        found[re.search(r'tooltip="(.*?)"', line)[1]] = (words, kept, "dashed" in line)
    return found


def folded_view(engine):
    """A leaf, a scope of 160 nodes, two kinds of repetitions, a sum, and the result."""
    x = engine.Value(0.5, label="x")
    with scope("layer"):
        y = x
        for _ in range(40):
            y = (y * x + 1.5).tanh()
    root = y
    for i in range(30):
        root = root + engine.Value(float(i)) * x
    root = root * x
    root.label = "loss"
    return Graph(root).overview(12)


@pytest.mark.parametrize("theme", THEMES)
def test_each_kind_of_box_has_its_colours(engine, theme):
    """A leaf, what is computed, the result, and what is folded up, with numbers, a sign, or how many there are."""
    colours = THEMES[theme]
    quiet, leaf = (
        {"fillcolor": fill, "color": line, "penwidth": "1.1"}
        for fill, line in ((colours.node, colours.outline), (colours.leaf, colours.leaf_outline))
    )
    result = {"fillcolor": colours.root, "color": colours.root_outline, "penwidth": "1.8"}
    x = engine.Value(2.0, label="x")
    root = (x * 3.0).relu()
    root.label = "out"
    root.backward()
    assert boxes(source(Graph(root).view(), theme)) == {
        "x": (["x", "data", "2", "grad", "3"], leaf, False),
        "a plain number": ([], {"color": colours.quiet}, False),
        "v1": (["×", "v1", "data", "6", "grad", "1"], quiet, False),
        "out": (["relu", "out", "data", "6", "grad", "1"], result, False),
    }
    found = boxes(source(folded_view(engine), theme))
    fold = {"fillcolor": colours.fold, "color": colours.outline, "peripheries": "2"}
    assert found["layer"] == (["layer", "160 nodes   × 40   + 40   tanh 40"], fold, False)
    assert found["leaf ×30"] == (
        ["leaf", "×30"],
        fold | {"fillcolor": colours.leaf, "color": colours.leaf_outline},
        False,
    )
    assert found["× ×30"] == (["×", "×30"], fold, False)
    assert found["loss"][0] == ["×", "loss", "data", "109.231", "grad", "0"]


def test_the_caption_counts_what_is_drawn(engine):
    """Of a small graph there is none; where nodes are folded up it says how many, and where they are left out, too."""
    captions = [
        re.findall(r'labelloc=b, label="(.*?)"', source(view))
        for view in (Graph(neuron(engine)).view(), folded_view(engine), end_of_a_chain(engine))
    ]
    assert captions == [
        [], ["252 nodes, shown as 6"], ["21 nodes, shown as 3; 18 further from the result are not shown"],
    ]  # fmt: skip


def chain(engine, length):
    root = engine.Value(1.0, label="x")
    for _ in range(length):
        root = root.tanh()
    return root


def end_of_a_chain(engine):
    root = chain(engine, 20)
    return Graph(root).neighbourhood(root, 2)


def test_what_leads_to_what_is_left_out_is_dashed(engine):
    """And nothing else."""
    found = boxes(source(end_of_a_chain(engine)))
    assert [(name, is_dashed) for name, (_, _, is_dashed) in found.items()] == [
        ("v18", True), ("v19", False), ("v20", False),
    ]  # fmt: skip


@pytest.mark.parametrize(("length", "direction"), [(13, "LR"), (14, "TB")])
def test_fourteen_boxes_fit_beside_each_other(engine, length, direction):
    """One more, and the graph runs downwards."""
    assert f"rankdir={direction}" in source(Graph(chain(engine, length)).view())


@pytest.mark.parametrize(("label", "shown"), [("n" * 28, "n" * 28), ("n" * 29, "n" * 27 + "…"), ("a\nb", "a b")])
def test_long_names_are_cut(engine, label, shown):
    """To 28 characters, and to one line."""
    (words, _, _), *_ = boxes(source(Graph(engine.Value(1.0, label=label).tanh()).view())).values()
    assert words[0] == shown


def test_boxes_are_as_large_as_what_is_in_them(engine):
    """And no larger: two below each other take less than three inches, frame and all."""
    svg = rendered(source(Graph(engine.Value(1.0, label="x") * 3.0).view()), "svg").decode()
    assert float(re.search(r'height="([\d.]+)pt"', svg)[1]) < 2.5 * 96


def test_edges_have_the_local_gradient(engine):
    """One that is used twice says so, a plain number's edge has none, and neither has one between folded parts."""
    x = engine.Value(2.0, label="x")
    edges = [re.findall(r"(n\d+ -> n\d+) \[(.*)\];", source(view)) for view in (
        Graph((x * 3.0).tanh() + (x + x)).view(), folded_view(engine),
    )]  # fmt: skip
    assert edges[0] == [
        ("n0 -> n2", 'label="  3  "'), ("n1 -> n2", "penwidth=1.3"), ("n2 -> n3", 'label="  2.45765e-05  "'),
        ("n0 -> n4", 'label="  1 ×2  "'), ("n3 -> n5", 'label="  1  "'), ("n4 -> n5", 'label="  1  "'),
    ]  # fmt: skip
    assert {label for _, label in edges[1]} == {"penwidth=1.3", 'label="  218.463  "'}


def test_the_librarys_warnings_are_not_the_readers(engine, monkeypatch, recwarn):
    """Neither as it is loaded nor as it draws; and no descriptor stays open."""
    (tmp := os.dup(2), os.close(tmp))

    class Library:
        class AGraph:
            def __init__(self, string):
                warnings.warn("no such font", stacklevel=1)

            def draw(self, format, prog):
                warnings.warn("no such font", stacklevel=1)
                return f"{format} {prog}".encode()

    def loaded(name):
        warnings.warn(f"{name} is old", stacklevel=1)
        return Library

    monkeypatch.setattr("importlib.import_module", loaded)
    assert (rendered("", "png"), rendered("", "svg", placed=True)) == (b"png dot", b"svg nop2")
    assert [str(each.message) for each in recwarn] == []
    after = os.dup(2)
    os.close(after)
    assert after == tmp


# ---------------------------------------------------------------- without Graphviz


def cards_of(svg):
    """Of each card its kind, place, size, and texts (class, x, y, text)."""
    tree = ElementTree.fromstring(svg)
    named = "{http://www.w3.org/2000/svg}"
    for group in tree.iter(f"{named}g"):
        card = group.find(f"{named}rect")
        if card is None or card.get("class") != "card":
            continue
        x, y = map(float, re.findall(r"[\d.]+", group.get("transform")))
        written = [
            (text.get("class").split()[0], float(text.get("x")), float(text.get("y")), text.text)
            for text in group.iter(f"{named}text")
        ]
        yield group.get("class"), (x, y, float(card.get("width")), float(card.get("height"))), written


LETTER = 7.3  # pixels, at most


@pytest.mark.parametrize("tall", [False, True])
def test_words_fit_their_cards(engine, tall):
    """Names, signs and numbers lie on the card and not on each other; captions on no card; and all in the picture."""
    x = engine.Value(-1.23456e-7, label="x")
    small = (x * engine.Value(0.25, label="the_longest_name") + x).leaky_relu() + x
    for view in (folded_view(engine), Graph(small).view()):
        svg = _Drawing(view, is_tall=tall).text()
        cards = list(cards_of(svg))
        for _, (_, _, width, height), written in cards:
            for kind, at, y, said in written:
                length = LETTER * len(said)
                left = at if kind in ("name", "quiet") else at - length / 2 if kind == "sign" else at - length
                assert left >= 6.0
                assert left + length <= width - 6.0
                assert 12.0 <= y <= height - 6.0
            signs = [at + LETTER * len(said) / 2 for kind, at, _, said in written if kind == "sign"]
            assert max(signs, default=0.0) < min(at for kind, at, _, _ in written if kind == "name")
            rows = {y: sorted(each for each in written if each[2] == y) for _, _, y, _ in written if y > 30}
            for number, caption in (row for row in rows.values() if len(row) == 2):
                assert number[1] - LETTER * len(number[3]) >= caption[1] + LETTER * len(caption[3])
        tree = ElementTree.fromstring(svg)
        width, height = float(tree.get("width")), float(tree.get("height"))
        assert max(x + wide for _, (x, _, wide, _), _ in cards) == pytest.approx(width - 32, abs=1)
        assert max(y + high for _, (_, y, _, high), _ in cards) <= height - 31
        if not tall:
            for label in (each for each in tree.iter() if each.get("class") == "caption"):
                middle, half = float(label.get("x")), LETTER * len(label.text) / 2
                assert all(middle + half < x or x + wide < middle - half for _, (x, _, wide, _), _ in cards)


def test_cards_of_a_still_picture(engine):
    """Each with its kind, name, sign and numbers; what is folded up is lower, and says how many are in it."""
    told = [
        (kind, at[3], [said for *_, said in written]) for kind, at, written in cards_of(picture(folded_view(engine)))
    ]
    assert told[0] == ("leaf", 62.0, ["x", "data", "0.5", "grad", "0"])
    assert ("fold", 46.0, ["layer", "nodes", "160"]) in told
    assert told[-1] == ("root", 62.0, ["×", "loss", "data", "109.231", "grad", "0"])
    assert [kind for kind, _, _ in told] == ["leaf", "fold", "fold", "fold", "fold", "root"]


def test_gradients_have_a_colour_of_their_own(engine):
    """In the pictures of both kinds, and data has none."""
    shown = ElementTree.fromstring(picture(Graph(neuron(engine)).view()))
    classes = [each.get("class").split() for each in shown.iter() if each.get("class", "").startswith("number")]
    assert classes == [["number"], ["number", "grad"]] * 6


def test_a_still_picture_is_told_in_words(engine):
    """The result, and the first six of what it is computed from; constants are not among them."""
    root = engine.Value(3.0, label="a") * 2.0
    assert 'aria-label="Graph of v1 = 6, computed from a = 3"' in picture(Graph(root).view())
    for i in range(6):
        root = root + engine.Value(float(i), label=f"x{i}")
    (said,) = re.findall(r'aria-label="(.*?)"', picture(Graph(root).view()))
    assert said.endswith(" = 21, computed from a = 3, x0 = 0, x1 = 1, x2 = 2, x3 = 3, x4 = 4")


@pytest.mark.parametrize(("label", "shown"), [("n" * 22, "n" * 22), ("n" * 23, "n" * 21 + "…"), ("a\nb", "a b")])
def test_long_names_on_cards_are_cut(engine, label, shown):
    """To 22 characters, and to one line."""
    (_, _, written), *_ = cards_of(picture(Graph(engine.Value(1.0, label=label).tanh()).view()))
    assert written[0][-1] == shown


def test_a_plain_number_alone_is_drawn(engine):
    """There is nothing else to draw; beside anything else it is left out."""
    constant = next(node for node in (engine.Value(1.0) * 3.0)._topological_order() if node._constant)
    assert [written[0][-1] for _, _, written in cards_of(picture(Graph(constant).view()))] != []
