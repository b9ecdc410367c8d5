"""What the picture shows at each step: which cards are lit, which edges fire, what is written, and where it is."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Tab

from gradwalk.nn import MLP
from gradwalk.show.play import page

# whole numbers throughout, so that what is written is what is meant
GRAPHS: list[tuple[str, dict[str, float], str]] = [
    ("(a*b + a)**2", {"a": 2.0, "b": -3.0}, "right"),
    ("relu(a*b + d)*a - 3*b", {"a": 2.0, "b": -3.0, "d": 10.0}, "right"),
    ("a + a", {"a": 2.0}, "right"),
    ("c = a*b; d = c*c + a; d*c + d", {"a": 2.0, "b": 1.0}, "right"),
    ("c = a*b; d = c*c + a; d*c + d", {"a": 2.0, "b": 1.0}, "breadth_first"),
    ("(a*b + a)**2", {"a": 2.0, "b": -3.0}, "assign"),
    ("a*b + a", {"a": 2.0, "b": -3.0}, "not_reset"),
    ("a*b + a", {"a": 2.0, "b": -3.0}, "no_order"),
]

SEEN = """(() => { const { drawing, line, player } = gradwalk;
  const text = (e) => (e && getComputedStyle(e).visibility === "visible" ? e.textContent : "");
  const classes = (e) => e.getAttribute("class").split(" ");
  const seen = () => ({
    states: drawing.cards.map(({ group, kinds }) => classes(group).filter((each) => !kinds.split(" ").includes(each))),
    data: drawing.cards.map((card) => text(card.dataText)), grads: drawing.cards.map((card) => text(card.gradText)),
    fires: [...drawing.firing.children].map((path) => [path.getAttribute("class"), path.getAttribute("d")]),
    told: [...drawing.told.children].map((each) => [each.textContent, each.getAttribute("class"),
                                                    Number(each.getAttribute("x")), Number(each.getAttribute("y"))]),
    labels: drawing.edges.map((edge) => edge.label && edge.label.textContent) });
  const at = (t) => { player.go(t, "jump"); return seen(); };
  const forth = Array.from({ length: line.steps + 1 }, (_, t) => at(t));
  const back = Array.from({ length: line.steps + 1 }, (_, t) => at(line.steps - t)).reverse();
  const steps = [...line.contributions].map(({ node, child, slot, before, after, wrong }) =>
    ({ kind: "contribution", node, child, slot, before, after, wrong }));
  const forward = line.computing.map((node) => ({ kind: "forward", node }));
  return { forth, back, vertical: drawing.vertical, mode: line.mode, root: line.graph.root,
    steps: [{ kind: "start" }, ...forward, { kind: "seed", node: line.graph.root }, ...steps],
    nodes: line.graph.nodes.map(({ children, constant }, i) => ({ children, constant, data: line.data[i],
      local: line.localGrads[i], start: line.start[i], right: line.right[i] })),
    at: drawing.cards.map(({ k, size }) => ({ ...drawing.placed.at[k], ...size })),
    paths: drawing.edges.map(({ path }) => [path.getAttribute("class"), path.getAttribute("d")]),
    edges: drawing.edges.map(({ node, slot, spot }) => ({ node, slot, spot })) };
})()"""


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.open(width=1280, height=720, reduced=True)
    yield opened
    assert opened.errors == []
    opened.close()


@pytest.fixture(scope="module")
def walks(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Every step of every graph, there and back, in a wide view and in a high one, where it flows down."""
    tab = browser.open(width=1280, height=720, reduced=True)
    tab.show(page(), tmp_path_factory.mktemp("page"))
    found = []
    for text, values, mode in GRAPHS:
        shown = json.dumps({"text": text, "values": values})
        tab.run(f"gradwalk.example({shown}); gradwalk.setMode('{mode}')")
        tab.settle()
        found.append(tab.run(SEEN))
        tab.run("gradwalk.drawing.viewport.view = { width: 100, height: 1200 }; gradwalk.drawing.build()")
        found.append(tab.run(SEEN))
        tab.run("gradwalk.measure()")
    assert [walk["vertical"] for walk in found] == [False, True] * len(GRAPHS)
    assert tab.errors == []
    tab.close()
    return found


def written(number: float) -> str:
    return f"{number:g}".replace("-", "−")


def computed_until(walk: dict[str, Any], t: int) -> int:
    step = walk["steps"][t]
    return {"start": 0, "forward": step.get("node", 0) + 1}.get(step["kind"], len(walk["nodes"]))


def test_back_is_as_there(walks: list[dict[str, Any]]) -> None:
    """A step looks the same whichever side one comes from."""
    for walk in walks:
        assert walk["forth"] == walk["back"]


def test_what_is_lit_is_what_the_step_is_about(walks: list[dict[str, Any]]) -> None:
    """The node that is computed or seeded, the one that hands on, the one that receives, what is wrong, what waits."""
    for walk in walks:
        last = len(walk["steps"]) - 1
        grads = [node["start"] for node in walk["nodes"]]
        for t, (step, seen) in enumerate(zip(walk["steps"], walk["forth"], strict=True)):
            kind = step["kind"]
            if kind == "seed":
                grads[step["node"]] = 1
            if kind == "contribution":
                grads[step["child"]] = step["after"]
            for i, node in enumerate(walk["nodes"]):
                is_here, is_there = i == step.get("node"), i == step.get("child")
                expected = {
                    "waiting": node["children"] and i >= computed_until(walk, t),
                    "active-forward": is_here and kind in ("forward", "seed"),
                    "active-upstream": is_here and kind in ("seed", "contribution"),
                    "active-child": is_there,
                    "wrong-step": step.get("wrong") and (is_here or is_there),
                    "wrong": t == last and walk["mode"] != "right" and grads[i] != node["right"],
                }
                assert [name for name, holds in expected.items() if holds] == sorted(
                    seen["states"][i], key=list(expected).index
                ), (t, i)


def test_cards_have_the_numbers_of_the_step(walks: list[dict[str, Any]]) -> None:
    """Data once they are computed, gradients once there are any, of all but constants."""
    for walk in walks:
        grads = [node["start"] for node in walk["nodes"]]
        for t, (step, seen) in enumerate(zip(walk["steps"], walk["forth"], strict=True)):
            if step["kind"] == "seed":
                grads[step["node"]] = 1
            if step["kind"] == "contribution":
                grads[step["child"]] = step["after"]
            until = computed_until(walk, t)
            has_grads = step["kind"] in ("seed", "contribution") or walk["mode"] == "not_reset"
            told = [(i, node) for i, node in enumerate(walk["nodes"]) if not node["constant"]]
            known = [written(n["data"]) if not n["children"] or i < until else "" for i, n in told]
            assert known == [seen["data"][i] for i, _ in told], t
            shown = [seen["grads"][i] for i, _ in told if has_grads or not seen["grads"][i]]
            assert [written(grads[i]) if has_grads else "" for i, _ in told] == shown, t


def port(walk: dict[str, Any], i: int, side: int, count: int = 1, slot: int = 0) -> tuple[float, float]:
    at = walk["at"][i]
    share = (slot + 1) / (count + 1) - 0.5
    dx, dy = (share, side / 2) if walk["vertical"] else (side / 2, share)
    return round(at["x"] + dx * at["width"], 1), round(at["y"] + dy * at["height"], 1)


def ends(drawn: str) -> list[tuple[float, float]]:
    """The beginning and the end of an edge, and the tip of its arrowhead."""
    line, head = drawn.split("M")[1:]
    at = [[float(each) for each in re.findall(r"-?[\d.]+", part)] for part in (line, head)]
    return [(at[0][0], at[0][1]), (at[0][-2], at[0][-1]), (at[1][2], at[1][3])]


def is_backward(drawn: str, vertical: bool) -> bool:
    """Whether the arrowhead opens toward the result."""
    wing_x, wing_y, x, y, *_ = (float(each) for each in re.findall(r"-?[\d.]+", drawn.split("M")[2]))
    return wing_y > y if vertical else wing_x > x


def near(one: Any, other: Any) -> bool:
    return all(abs(a - b) < 0.11 for p, q in zip(one, other, strict=True) for a, b in zip(p, q, strict=True))


def test_edges_go_from_card_to_card(walks: list[dict[str, Any]]) -> None:
    """From the middle of the operand's end to the result's beginning, arguments in order, the head at the result."""
    for walk in walks:
        expected = [
            (port(walk, child, 1), port(walk, i, -1, len(node["children"]), slot))
            for i, node in enumerate(walk["nodes"])
            for slot, child in enumerate(node["children"])
        ]
        assert len(expected) == len(walk["paths"])
        for (start, end), (name, drawn) in zip(expected, walk["paths"], strict=True):
            assert name == "edge"
            assert near([start, end, end], ends(drawn))
            assert not is_backward(drawn, walk["vertical"])


def test_what_fires_is_what_the_step_uses(walks: list[dict[str, Any]]) -> None:
    """Forward all edges into the node; backward the one edge, with its head at the child and its number beside it."""
    for walk in walks:
        for t, (step, seen) in enumerate(zip(walk["steps"], walk["forth"], strict=True)):
            forward = step["kind"] == "forward"
            state = (
                "edge fires-forward" if forward else "edge fires-backward" + " fires-wrong" * step.get("wrong", False)
            )
            operands = walk["nodes"][step["node"]]["children"] if "node" in step else []
            slots = list(range(len(operands))) if forward else [step["slot"]] if "slot" in step else []
            assert [name for name, _ in seen["fires"]] == [state] * len(slots)
            for slot, (_, drawn) in zip(slots, seen["fires"], strict=True):
                start, end = port(walk, operands[slot], 1), port(walk, step["node"], -1, len(operands), slot)
                assert near([start, end, end if forward else start], ends(drawn))
                assert is_backward(drawn, walk["vertical"]) is not forward
            if step["kind"] != "contribution":
                assert seen["told"] == []
                continue
            spot = next(e["spot"] for e in walk["edges"] if (e["node"], e["slot"]) == (step["node"], step["slot"]))
            local = written(walk["nodes"][step["node"]]["local"][step["slot"]])
            assert seen["told"] == [[local, state.replace("edge", "local"), spot["x"], spot["y"]]], t


def test_local_gradients_stand_on_the_edges(walks: list[dict[str, Any]]) -> None:
    """From when a node is computed on; one makes room for the number of the edge that fires; constants have none."""
    for walk in walks:
        for t, (step, seen) in enumerate(zip(walk["steps"], walk["forth"], strict=True)):
            fires = step.get("node"), step.get("slot")
            fired = [each["spot"]["box"] for each in walk["edges"] if (each["node"], each["slot"]) == fires]
            for edge, label in zip(walk["edges"], seen["labels"], strict=True):
                node = walk["nodes"][edge["node"]]
                if walk["nodes"][node["children"][edge["slot"]]]["constant"]:
                    assert (edge["spot"], label) == (None, None)
                    continue
                a = edge["spot"]["box"]
                is_met = any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for b in fired)
                is_shown = edge["node"] < computed_until(walk, t) and not is_met
                assert label == (written(node["local"][edge["slot"]]) if is_shown else ""), t


# ---------------------------------------------------------------- parts that are folded up

PART = "(() => { const e = document.querySelector('.part.active-child .grad, .part.active-forward .grad');"
PART += " return [e.textContent, e.classList.contains('data-now'), e.classList.contains('arrived')]; })()"


def test_what_travels_into_a_part_arrives_there(browser: Browser, tmp_path: Path) -> None:
    """Meanwhile the part says what the node had, then what it has, as gradients; forward it says what was computed."""
    tab = browser.open(width=1280, height=720)
    tab.show(page(MLP(20, [40, 40, 1])([0.1 * k for k in range(20)])), tmp_path)
    found = tab.run(
        "(() => { const { line, drawing, graph, player } = gradwalk; const steps = [...line.contributions];"
        " const k = steps.findIndex(({ child, before, after }) => before !== 0 && after !== before &&"
        " drawing.cards[drawing.itemOf[child]].item.part); player.go(line.forwardSteps + 1 + k, 'jump');"
        f" player.step(1); return [graph.names[steps[k].child], steps[k].before, steps[k].after, {PART}]; }})()"
    )
    name, before, after, travelling = found
    assert [f"{name}: {before:.4g}".replace("-", "−"), False, False] == travelling
    tab.wait(f"{PART}[2]")
    assert [f"{name}: {after:.4g}".replace("-", "−"), False, True] == tab.run(PART)
    tab.wait(f"!{PART}[2]", 2)
    is_data = tab.run(
        "(() => { const { line, drawing, player } = gradwalk;"
        " const t = line.computing.findIndex((i) => drawing.cards[drawing.itemOf[i]].item.part);"
        f" player.go(t + 1, 'jump'); return {PART}; }})()"
    )[1]
    assert is_data is True
    assert tab.errors == []
    tab.close()


def test_a_picture_that_is_saved_has_all_of_the_graph(tab: Tab, tmp_path: Path) -> None:
    """With a margin around it, on the ground of the page, in its colours; what was for the page alone is left out."""
    tab.without_downloads()
    tab.show(page("relu(a*b + d)", {"a": 2.0, "b": -3.0, "d": 10.0}), tmp_path)
    tab.run("gradwalk.setTheme('dark'); gradwalk.drawing.viewport.zoom(2)")
    saved = tab.run(
        "(() => { globalThis.saved = new Promise((done) => { const make = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => { blob.text().then(done); return make.call(URL, blob); }; });"
        " document.querySelector('[data-save=svg]').click(); return globalThis.saved; })()"
    )
    picture = ElementTree.fromstring(saved)
    width, height, ground = tab.run(
        "(({ placed: { width, height }, svg }) => [width, height, getComputedStyle(svg).getPropertyValue('--ground')])"
        "(gradwalk.drawing)"
    )
    sizes = [float(each) for each in picture.get("viewBox", "").split()]
    assert sizes == pytest.approx([-24, -24, width + 48, height + 48])
    assert [float(picture.get(name, 0)) for name in ("width", "height")] == pytest.approx(sizes[2:])
    first = picture[0]
    assert [float(first.get(name, 0)) for name in ("x", "y", "width", "height")] == pytest.approx(sizes)
    assert first.get("fill") == ground.strip()
    kept = {name for each in [*picture.iter()][1:] for name in each.attrib}
    assert kept.isdisjoint({"class", "tabindex", "role", "aria-label", "data-card"})
    assert picture.get("class") is None
    paths = [each for each in picture.iter("{http://www.w3.org/2000/svg}path") if each.get("d")]
    assert {each.get("fill") for each in paths} == {"none"}
    assert None not in {each.get("stroke") for each in paths}


def test_a_png_is_twice_as_large(tab: Tab, tmp_path: Path) -> None:
    """As the picture; where that would be too large for a browser, no larger than 8,000 pixels."""
    tab.without_downloads()
    tab.show(page("a*b", {"a": 2.0, "b": -3.0}), tmp_path)
    sizes = tab.run(
        "(async () => { const { drawing, header } = gradwalk; const { width, height } = drawing.placed;"
        " const found = [[width, height].map((each) => Math.ceil(2 * (each + 48)))]; const make = URL.createObjectURL;"
        " const sizeOf = () => new Promise((done) => { URL.createObjectURL = (blob) => {"
        " if (blob.type === 'image/png') createImageBitmap(blob).then((image) => done([image.width, image.height]));"
        " return make.call(URL, blob); }; }); for (const wide of [width, 15952]) { drawing.placed.width = wide;"
        " const size = sizeOf(); header.on.save('png'); found.push(await size); } return found; })()"
    )
    assert sizes[1] == pytest.approx(sizes[0], abs=1)
    assert sizes[2][0] == 8000
