"""Exports: each is valid in its own language, whatever a label holds."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys

import pytest

from gradwalk.graph import Graph, edge_caption
from gradwalk.scopes import scope

HOSTILE = [
    "<script>alert(1)</script>", '"; node [shape=none]; "', "a\\", "\\N", "&lt;b&gt;", "]]>", "a|b", '"]:::x', "a\nb",
    "\x00\x1b[31m", "`js`", "{{x}}", "end", "#quot;", "${x}", "--> n0", "</title>", "ünï 中文 🙂",
]  # fmt: skip


def labelled(engine, label):
    x = engine.Value(2.0, label=label)
    root = x * 3.0
    root.label = label
    return root


@pytest.mark.parametrize("label", HOSTILE)
def test_json_returns_the_label(engine, label):
    """JSON carries the label exactly, without a character that could end a <script> element."""
    text = Graph(labelled(engine, label)).view().to_json()
    assert json.loads(text)["items"][0]["label"] == label
    assert not set("<>&\u2028\u2029") & set(text)


@pytest.mark.parametrize("label", HOSTILE)
def test_dot_keeps_the_label_a_label(engine, label):
    """Graphviz reads three nodes and two edges back, whatever the labels say."""
    pygraphviz = pytest.importorskip("pygraphviz")
    agraph = pygraphviz.AGraph(string=Graph(labelled(engine, label)).view().to_dot())
    assert (sorted(agraph.nodes()), len(agraph.edges())) == (["n0", "n1", "n2"], 2)


@pytest.mark.parametrize("label", HOSTILE)
def test_mermaid_keeps_the_label_a_label(engine, label):
    """Inside the quotes of a Mermaid label there is neither a quote nor markup, only text and entities."""
    lines = Graph(labelled(engine, label)).view().to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    for line in lines[1:]:
        inside = re.fullmatch(r'  n\d(?:\["(.*)"\]|\s-->\|"(.*)"\| n\d)', line)
        assert inside, line
        caption = (inside[1] or inside[2]).replace("<br/>", "")
        assert re.fullmatch(r"(?:[\w .,]|#\d+;)*", caption), line


def test_a_folded_scope_says_how_many_nodes_it_has(engine):
    """In both languages; what is repeated says how often, in its title."""
    with scope("layer"):
        hidden = engine.Value(2.0) * 3.0
    view = Graph(hidden + 1.0).collapse()
    assert '[label="layer\\n3 nodes"];' in view.to_dot()
    assert '["layer<br/>3 nodes"]' in view.to_mermaid()


def test_edges_are_counted_where_there_are_several(engine):
    """Of one there is nothing to say."""
    x, y = engine.Value(3.0, label="x"), engine.Value(2.0, label="y")
    view = Graph(x * x + y).view()
    captions = [edge_caption(edge) for edge in view.edges]
    assert captions == ["3 ×2", "1", "1"]


def test_json_says_where_nodes_were_made_and_what_is_hidden(engine):
    """The scope of each, and how many are not among the items."""
    with scope("a"), scope("b"):
        inner = engine.Value(2.0).tanh()
    root = inner.exp().exp()
    made = Graph(root).neighbourhood(inner, radius=1).to_dict()
    assert [item["scope"] for item in made["items"]] == [["a", "b"], ["a", "b"], []]
    assert (made["nodes"], made["hidden"]) == (4, 1)


def test_json_has_no_bare_nan(engine):
    """What JSON lacks is written as a string."""
    root = engine.Value(math.inf) * 0.0
    text = Graph(root).view().to_json()
    assert [item["data"] for item in json.loads(text)["items"]] == ["inf", 0.0, "nan"]


def test_networkx_has_the_numbers(engine):
    """Nodes carry data, gradient and operation, edges the local gradient; parallel edges stay apart."""
    networkx = pytest.importorskip("networkx")
    x = engine.Value(3.0, label="x")
    root = x * x
    root.backward()
    made = Graph(root).view().to_networkx()
    assert networkx.is_directed_acyclic_graph(made)
    assert (made.nodes[1]["data"], made.nodes[0]["grad"], made.nodes[0]["label"]) == (9.0, 6.0, "x")
    assert [attributes["local_grad"] for _, _, attributes in made.edges(data=True)] == [3.0]
    assert [attributes["count"] for _, _, attributes in made.edges(data=True)] == [2]
    not_finite = Graph(engine.Value(math.inf) * 1.0).view().to_networkx()
    assert not_finite.nodes[0]["data"] == math.inf  # which JSON has no number for


def test_networkx_missing_is_said():
    """Without networkx the error has the command that installs it."""
    program = (
        "import sys; sys.modules['networkx'] = None\n"
        "import gradwalk\nfrom gradwalk.graph import Graph\n"
        "try: Graph(gradwalk.Value(1.0)).view().to_networkx()\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install networkx" in run.stdout


def test_a_constant_gets_no_gradient(engine):
    """So no edge from one has a local gradient on it, in whatever form the graph leaves."""
    view = Graph(engine.Value(2.0, label="a") * 5.0 + 3.0).view()
    assert sorted((edge.local_grad is None, view.operation(edge.child)) for edge in view.edges) == [
        (False, "*"), (False, "leaf"), (True, "constant"), (True, "constant"),
    ]  # fmt: skip
    assert view.to_dot().count('label=""') == view.to_mermaid().count('|""|') == 2
