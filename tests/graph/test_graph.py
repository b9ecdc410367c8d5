"""A recorded graph seen from outside: counts, names, scopes, folding, and what cannot be shown in full."""

from __future__ import annotations

import gc
import pydoc
import random
import weakref
from functools import partial
from operator import add

import pytest

from gradwalk import scope
from gradwalk.graph import Graph, glyph_of, short_number
from gradwalk.scopes import path_of


def neuron(engine):
    a, b, d = (engine.Value(x, label=name) for x, name in ((2.0, "a"), (-3.0, "b"), (10.0, "d")))
    return (a * b + d).relu()


def chain(engine, length):
    root = engine.Value(1.0)
    for _ in range(length):
        root = root.tanh()
    return root


def test_order_has_children_first(engine):
    """Each node comes after its children, and the root is last."""
    graph = Graph(neuron(engine))
    assert all(child < i for i, children in enumerate(graph.children) for child in children)
    assert graph.order[-1] is graph.root


def test_counts_and_depth(engine):
    """Operations are counted as they are written; constants and leaves apart."""
    x = engine.Value(2.0)
    graph = Graph((x * 3.0 + x) ** 2)
    assert dict(graph.counts) == {"leaf": 1, "constant": 1, "*": 1, "+": 1, "**2": 1}
    assert graph.depth == 3


def test_what_is_computed_once_is_documented():
    """Asked of the class, as help() does, it is what describes it."""
    assert Graph.parents.__doc__ == "For each node the nodes computed from it; twice, if twice."
    assert "computed from it; twice" in pydoc.render_doc(Graph, renderer=pydoc.plaintext)


def test_parents_mirror_children(engine):
    """A node used twice by one parent has it twice."""
    x = engine.Value(2.0)
    graph = Graph(x * x)
    assert graph.parents == [[1, 1], []]


# ---------------------------------------------------------------- names


def test_names(engine):
    """What has no label is numbered: results v1, v2, …, leaves x1, x2, …; a name that is a label is passed over."""
    a, b = engine.Value(2.0, label="a"), engine.Value(3.0)
    root = (a + b) * (a - engine.Value(0.5, label="v2")) / -(a**2)
    assert Graph(root.tanh() + 0.25).names == ["a", "x1", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "0.25", "v9"]


def test_no_two_nodes_share_a_name(engine):
    """Equal labels are told apart, also from labels that look like the way they are."""
    labels = ["a", "a", "a#2", "", ""]
    leaves = [engine.Value(float(i), label=label) for i, label in enumerate(labels)]
    products = [leaves[0] * leaves[1], leaves[0] * leaves[1]]
    graph = Graph(engine.composites.sum([*leaves, *products]))
    assert len(set(graph.names)) == len(graph)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["a", "a", "a"], ["a", "a#2", "a#3"]),
        (["a", "a", "a#2", "a"], ["a", "a#3", "a#2", "a#4"]),
        (["layers.0.w.123", "layers.0.w.1234"], ["layers.0.w.123", "l0.w1234"]),
    ],
    ids=["equal", "taken", "long"],
)
def test_names_of_labels(engine, labels, names):
    """Of equal ones the second is #2, unless that is a label itself; up to 14 characters are not shortened."""
    graph = Graph(engine.composites.sum([engine.Value(1.0, label=label) for label in labels]))
    assert names == graph.names[:-1]


def test_what_made_a_node_is_told_as_it_is_written(engine):
    """A short whole power is raised; whatever was made by hand, and has no name, is a question mark."""
    x = engine.Value(2.0)
    by_hand = engine.Value(1.0, (x,), local_grads=(1.0,))
    nodes = [x**2, x**-3, x**99, x**100, x**0.5, x * 2.0, x.relu(), by_hand, x]
    assert [glyph_of(node) for node in nodes] == ["x²", "x⁻³", "x⁹⁹", "xⁿ", "xⁿ", "×", "relu", "?", "leaf"]


def test_names_show_no_control_characters(engine):
    """A label that would steer a terminal, or break a line, arrives as harmless text."""
    graph = Graph(engine.Value(1.0, label="a\x1b[2J\nb\u202e"))
    assert graph.names == ["a�[2J b�"]


def test_long_paths_are_short(engine):
    """A parameter deep in a model has a name that fits a card, unless that would be another's, too."""
    labels = [
        "layers.0.neurons.1.w.0",
        "layers.0.neurons.1.b",
        "w.0",
        "hidden.layer.1.b",
        "head.1.layer.b",
        "halo.1.layer.b",
    ]
    graph = Graph(engine.composites.sum([engine.Value(1.0, label=label) for label in labels]))
    assert graph.names[:-1] == ["l0.n1.w0", "l0.n1.b", "w.0", "hidden.l1.b", "head.1.layer.b", "halo.1.layer.b"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1.2345678, "1.2345678"),
        (-1.234567, "-1.234567"),
        (123456789.0, "123456789"),
        (1.23456789, "1.23457"),
        (-1.2345678, "-1.23457"),
        (1234567890.0, "1.23457e+09"),
    ],
)
def test_all_digits_are_shown_while_nine_characters_hold_them(number, shown):
    """Of more, six digits are."""
    assert short_number(number) == shown


# ---------------------------------------------------------------- scopes


def scoped(engine, samples=2):
    x, total = engine.Value(0.5, label="x"), 0.0
    weights = [engine.Value(0.1 * i) for i in range(4)]
    for _ in range(samples):
        with scope("model"):
            with scope("first"):
                hidden = (weights[0] * x + weights[1]).tanh()
            with scope("second"):
                out = weights[2] * hidden + weights[3]
        total = total + out * out
    return total


def test_scopes_are_a_tree(engine):
    """Sizes include the parts; leaves made outside belong to no scope."""
    graph = Graph(scoped(engine))
    model = graph.scopes.parts["model"]
    assert graph.scopes.size == len(graph)
    assert (model.size, model.parts["first"].size, model.parts["second"].path) == (10, 6, ("model", "second"))


def test_any_number_of_scope_names(engine):
    """A program may open a scope for each of its steps; a name opened again is the same scope."""
    for i in range(66_000):
        with scope(f"step {i}"):
            pass
    with scope("one more"), scope("inside"):
        v = engine.Value(1.0) * 2.0
    assert path_of(v) == ("one more", "inside")
    with scope("step 7"):
        assert path_of(engine.Value(1.0)) == ("step 7",)


def test_the_name_of_a_scope_is_kept_and_not_what_hangs_on_it(engine):
    name = type("Name", (str,), {})("of a class of one's own")
    kept = weakref.ref(name)
    with scope(name):
        made = engine.Value(1.0) * 2.0
    del name
    gc.collect()
    assert (path_of(made), kept()) == (("of a class of one's own",), None)


@pytest.mark.parametrize(("levels", "expected"), [(1, {"model"}), (2, {"model/first", "model/second"})])
def test_collapse_folds_scopes(engine, levels, expected):
    """Each scope of that level is one item, with the leaves that only it uses; the rest stays as it is."""
    view = Graph(scoped(engine)).collapse(levels)
    folded = {view.title(k) for k, item in enumerate(view.items) if item.kind == "scope"}
    assert expected == folded
    unfolded = [view.graph.order[item.nodes[0]] for item in view.items if item.kind == "node"]
    assert not any(node.label == "" and not node._children and not node._constant for node in unfolded)


def test_collapse_by_path(engine):
    """A scope chosen by its path is folded, and no other."""
    view = Graph(scoped(engine)).collapse([("model", "second")])
    assert [view.title(k) for k, item in enumerate(view.items) if item.kind == "scope"] == ["model/second"]


def test_of_paths_within_each_other_the_outer_one_is_folded(engine):
    """Whichever comes first."""
    for chosen in ([("model",), ("model", "second")], [("model", "second"), ("model",)]):
        view = Graph(scoped(engine)).collapse(chosen)
        assert [view.title(k) for k, item in enumerate(view.items) if item.kind == "scope"] == ["model"]


def test_a_leaf_that_several_parts_use_stays_in_sight(engine):
    """One that a single part uses is folded with it, and a part of one node is still a part."""
    shared, own = engine.Value(2.0, label="shared"), engine.Value(3.0, label="own")
    with scope("first"):
        first = shared * own
    with scope("second"):
        second = shared.tanh()
    view = Graph(first + second).collapse()
    assert [view.title(k) for k in range(len(view.items))] == ["shared", "first", "second", "v3"]
    assert [item.kind for item in view.items] == ["node", "scope", "scope", "node"]


def test_the_root_is_never_folded(engine):
    """The result stays in sight, whatever scope it was made in."""
    with scope("loss"):
        root = engine.Value(2.0) * engine.Value(3.0) + 1.0
    view = Graph(root).collapse()
    assert view.items[-1].nodes == [len(view.graph) - 1]
    assert view.items[-1].kind == "node"


def test_every_view_is_a_partition(engine):
    """Folding loses no node and shows none twice, and keeps every edge between items."""
    for view in (Graph(scoped(engine)).collapse(2, repeated=True), Graph(scoped(engine)).collapse(1)):
        assert sorted(i for item in view.items for i in item.nodes) == list(range(len(view.graph)))
        between = sum(view.item_of[c] != view.item_of[i] for i, cs in enumerate(view.graph.children) for c in cs)
        assert between == sum(edge.count for edge in view.edges)


# ---------------------------------------------------------------- repetition


def test_repeated_structure_is_one_item(engine):
    """Eight products summed are shown as one product, one sum and two kinds of leaves."""
    pairs = [(engine.Value(1.0), engine.Value(2.0)) for _ in range(8)]
    view = Graph(engine.composites.sum([(a * b).tanh() for a, b in pairs])).collapse(False, repeated=True)
    assert [view.title(k) for k in range(len(view.items) - 1)] == ["leaf ×16", "× ×8", "tanh ×8"]


def test_the_length_of_a_sum_does_not_matter(engine):
    """A sum written with + is one item, and sums of 3 and of 5 terms are the same structure."""

    def total(count):
        return sum((engine.Value(1.0) * engine.Value(2.0) for _ in range(count)), engine.Value(0.0)).exp()

    view = Graph(engine.composites.sum([total(3), total(5)])).collapse(False, repeated=True)
    titles = [view.title(k) for k in range(len(view.items))]
    assert {"+ ×8", "× ×8", "exp ×2"} <= set(titles)


def test_different_uses_stay_apart(engine):
    """Two structures of the same shape that are used differently are two items."""
    a, b, c = (engine.Value(x) for x in (1.0, 2.0, 3.0))
    view = Graph(a.tanh() * c + b.tanh().exp()).collapse(False, repeated=True)
    assert sum(view.operation(k) == "tanh" for k in range(len(view.items))) == 2


def items_of(engine, *terms):
    """What a sum of such terms is folded to."""
    view = Graph(engine.composites.sum(terms)).collapse(False, repeated=True)
    return [view.title(k) for k in range(len(view.items) - 1)]


def in_scope(name, make):
    with scope(name):
        return make()


@pytest.mark.parametrize(
    ("terms", "titles"),
    [
        (lambda x: [x("w.1").tanh(), x("w.23").tanh()], ["leaf ×2", "tanh ×2"]),
        (lambda x: [x("w.1").tanh(), x("b.1").tanh()], ["w.1", "v1", "b.1", "v2"]),
        (lambda x: [x("w1") ** 2, x("w2") ** 2], ["leaf ×2", "x² ×2"]),
        (lambda x: [x("w1") ** 2, x("w2") ** 3], ["w1", "v1", "w2", "v2"]),
        (lambda x: [x("") * 3.0, x("") * x("")], ["x1", "3", "v1", "leaf ×2", "v2"]),
        (lambda x: [in_scope(name, x("").tanh) for name in "aa"], ["leaf ×2", "tanh ×2"]),
        (lambda x: [in_scope(name, x("").tanh) for name in "ab"], ["x1", "v1", "x2", "v2"]),
        (lambda x: [in_scope(name, partial(add, x(""), x(""))) for name in "aa"], ["leaf ×4", "+ ×2"]),
        (lambda x: [in_scope(name, partial(add, x(""), x(""))) for name in "ab"], ["leaf ×2", "v1", "leaf ×2", "v2"]),
    ],
    ids=[
        "labels",
        "other labels",
        "powers",
        "other powers",
        "constants",
        "scope",
        "other scopes",
        "sums",
        "other sums",
    ],
)
def test_what_is_the_same_and_what_is_not(engine, terms, titles):
    """Numbers in a label do not count; its words, an operation's own numbers, constants and scopes do."""
    assert titles == items_of(engine, *terms(lambda label: engine.Value(2.0, label=label)))


def test_a_sum_that_is_used_twice_is_no_part_of_another(engine):
    """Only what nobody else sees goes into the longer sum."""
    a, b, c = (engine.Value(x) for x in (1.0, 2.0, 3.0))
    both = a + b
    view = Graph((both + c) * both).collapse(False, repeated=True)
    assert [view.operation(k) for k in range(len(view.items))].count("+") == 2


def test_a_root_that_ends_a_sum_belongs_to_no_part(engine):
    """The partial sums before it do."""
    folds = Graph(engine.Value(1.0) + engine.Value(2.0) + engine.Value(3.0)).folds()
    assert (len(folds[2]), folds[-1]) == (1, ())


def test_a_constant_belongs_to_the_part_that_uses_it(engine):
    """To the scope, and to what is repeated there; the root belongs to none."""
    xs = [engine.Value(x) for x in (1.0, 2.0)]
    with scope("layer"):
        out = engine.composites.sum([(x * 3.0).tanh() for x in xs])
    graph = Graph(out * 5.0)
    parts = dict(zip(graph.order, graph.folds(), strict=True))
    constants = [(node, parent) for parent in graph.order for node in parent._children if node._constant]
    assert [node.data for node, _ in constants] == [3.0, 3.0, 5.0]
    assert [parts[node] for node, _ in constants] == [parts[parent] for _, parent in constants]
    assert [parts[node][:1] for node, _ in constants] == [("layer",), ("layer",), ()]
    assert parts[graph.root] == ()


# ---------------------------------------------------------------- what is near


def test_neighbourhood(engine):
    """Within one edge of a sum are its terms and what was made of it; the rest is hidden, and counted."""
    root = neuron(engine)
    total = root._children[0]
    view = Graph(root).neighbourhood(total, radius=1)
    assert [view.title(k) for k in range(len(view.items))] == ["v1", "d", "v2", "v3"]
    assert (view.hidden, view.cut_edges(0)) == (2, 2)


def test_neighbourhood_of_a_stranger_is_refused(engine):
    """A node of another graph is named in the error."""
    with pytest.raises(ValueError, match="expected a node of this graph"):
        Graph(neuron(engine)).neighbourhood(engine.Value(7.0))


def test_the_nearest_are_kept(engine):
    """As many as asked for, by their distance, and no matter how far the rest is."""
    root = chain(engine, 9)
    view = Graph(root).neighbourhood(root, radius=9, most=3)
    assert ([item.nodes for item in view.items], view.hidden) == ([[7], [8], [9]], 7)


@pytest.mark.parametrize(
    ("most", "levels", "repeated"),
    [(40, 2, False), (13, 2, False), (12, 1, False), (11, 2, True), (5, 2, True), (4, 1, True)],
)
def test_an_overview_folds_no_more_than_it_has_to(engine, most, levels, repeated):
    """Scopes from the inside out, and what is repeated only where that is not enough."""
    graph = Graph(scoped(engine, samples=5))
    assert graph.overview(most).items == graph.collapse(levels, repeated).items


def test_of_what_cannot_be_folded_the_root_is_shown_first(engine):
    """And what is nearest to it."""
    assert [item.nodes for item in Graph(chain(engine, 9)).overview(1).items] == [[9]]
    assert [item.nodes for item in Graph(chain(engine, 9)).overview(3).items] == [[7], [8], [9]]


def test_overview_shows_small_graphs_whole(engine):
    """Up to the limit, every node is an item."""
    graph = Graph(chain(engine, 99))
    assert len(graph.overview(100).items) == 100


@pytest.mark.parametrize("most", [5, 40, 300])
def test_overview_is_bounded(engine, most):
    """Whatever the graph, no more items than asked for, and the root among them."""
    rng = random.Random(most)
    nodes = [engine.Value(rng.random()) for _ in range(5)]
    for _ in range(1500):
        a, b = rng.choice(nodes[-40:]), rng.choice(nodes)
        nodes.append(rng.choice([lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a.tanh()])(a, b))
    for root in (nodes[-1], chain(engine, 2000), scoped(engine, 300)):
        view = Graph(root).overview(most)
        assert len(view.items) <= most
        assert len(view.graph) - 1 in view.item_of
