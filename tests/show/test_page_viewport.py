"""What part of the graph is seen: the page's viewport, run in V8 without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from gradwalk.show.play import script

READABLE = 11 / 12
SMALLEST, LARGEST, LARGEST_FIT = 0.04, 4, 1.5

# a viewport of 600 by 400 at (100, 50) of the window; `hear` is what the browser would tell it
DRIVER = """
function viewport(width, height, view = { width: 600, height: 400 }) {
  const heard = {};
  const svg = { addEventListener: (name, act) => { heard[name] = act; },
                getBoundingClientRect: () => ({ left: 100, top: 50, ...view }) };
  const world = { gliding: null, transform: "", moved: 0,
                  classList: { toggle: (name, is) => { world[name] = is; } },
                  style: { setProperty: (name, value) => { world[name] = value; } } };
  const made = new module_viewport.Viewport(svg, world, () => { world.moved += 1; });
  made.view = view;
  made.resize(width, height);
  world.moved = 0;
  made.hear = (name, x, y, given = {}) => {
    let isTaken = false;
    heard[name]({ clientX: x, clientY: y, pointerId: 1, deltaX: 0, deltaY: 0, target: { closest: () => null },
                  preventDefault: () => { isTaken = true; }, ...given });
    return isTaken;
  };
  return made;
}
const card = (x, y, width, height) => ({ point: { x, y }, size: { width, height } });
const at = ({ x, y, scale }) => [x, y, scale];
"""


@pytest.fixture(scope="module")
def v8() -> Iterator[MiniRacer]:
    with MiniRacer() as context:
        context.eval(script("viewport") + DRIVER)
        yield context


def told(v8: MiniRacer, body: str) -> Any:
    return json.loads(v8.eval(f"JSON.stringify((() => {{ {body} }})())"))


@pytest.mark.parametrize(
    ("width", "height", "x", "y", "scale"),
    [
        (100, 100, 225, 125, LARGEST_FIT),  # small: in the middle, and not as large as it could be
        (576, 200, 12, 100, 1.0),  # just as wide as there is room
        (300, 376, 150, 12, 1.0),  # and as high
        (
            640,
            100,
            300 - 320 * READABLE,
            200 - 50 * READABLE,
            READABLE,
        ),  # hardly too wide: in the middle, with narrower margins
        (648, 100, 3, 200 - 50 * READABLE, READABLE),  # the narrowest there are
        (649, 100, 588 - 649 * READABLE, 200 - 50 * READABLE, READABLE),  # what does not fit shows its end
        (1200, 100, 588 - 1100, 200 - 50 * READABLE, READABLE),
        (100, 1200, 300 - 50 * READABLE, 388 - 1100, READABLE),
        (100, 428, 300 - 50 * READABLE, 200 - 214 * READABLE, READABLE),
        (1200, 600, 588 - 1100, 200 - 275, READABLE),  # wide and high: the middle of what is less
        (600, 600, 25, 200 - 275, READABLE),
    ],
)
def test_what_is_seen_first(
    v8: MiniRacer, width: float, height: float, x: float, y: float, scale: float
) -> None:  # fmt: skip
    """All of the graph, in the middle; if that could not be read, the end of it, where the result is."""
    found = told(v8, f"return at(viewport({width}, {height}));")
    assert [x, y, scale] == pytest.approx(found)


def test_fit_goes_back_and_forth(v8: MiniRacer) -> None:
    """Between all of a large graph and a readable size; zoomed by hand, all of it comes first."""
    found = told(
        v8,
        "const seen = viewport(1152, 100); const scales = [seen.scale];"
        " for (const by of [1, 1, 1, 1.3, 1]) {"
        " if (by !== 1) seen.zoom(by); seen.toggleFit(); scales.push(seen.scale); }"
        " return scales;",
    )
    assert pytest.approx(found) == [READABLE, 0.5, READABLE, 0.5, 0.5, READABLE]
    assert told(v8, "const seen = viewport(1152, 100); seen.toggleFit(); return at(seen);") == [
        300 - 288,
        200 - 25,
        0.5,
    ]
    assert told(v8, "const seen = viewport(99999, 1); seen.toggleFit(); return seen.scale;") == SMALLEST
    assert told(v8, "return viewport(1152, 100).whole;") == 0.5


@pytest.mark.parametrize("factor", [1.25, 0.8, 1e-9, 1e9])
@pytest.mark.parametrize("at", ["null", "{ x: 40, y: 350 }"])
def test_zooming_keeps_what_is_under_the_pointer(v8: MiniRacer, factor: float, at: str) -> None:
    """Or, with a button or a key, what is in the middle; within bounds."""
    x, y, scale, before, after = told(
        v8,
        f"const seen = viewport(400, 300); seen.pan(30, -20); const centre = {at} ?? {{ x: 300, y: 200 }};"
        " const under = () => [(centre.x - seen.x) / seen.scale, (centre.y - seen.y) / seen.scale];"
        f" const before = under(); const [x, y] = at(seen); seen.zoom({factor}, {at}); const after = under();"
        " return [seen.x - x, seen.y - y, seen.scale, before, after];",
    )
    assert before == pytest.approx(after)
    assert scale == pytest.approx(max(SMALLEST, min(LARGEST, 376 / 300 * factor)))
    assert 0 not in (x, y)


def test_what_is_drawn_is_where_it_should_be(v8: MiniRacer) -> None:
    """The picture moves with the numbers, the page hears of it, and only what follows a step glides."""
    for act, is_gliding in (
        ("fit()", False),
        ("zoom(2)", False),
        ("pan(3, 4)", False),
        ("reveal([card(5000, 0, 9, 9)])", True),
    ):
        x, y, scale, transform, gliding, moved = told(
            v8,
            "const seen = viewport(9000, 300); const { world } = seen;"
            f" world.gliding = {str(not is_gliding).lower()};"
            f" seen.{act}; return [...at(seen), world.transform, world.gliding, world.moved];",
        )
        assert (f"translate({x:.2f}px, {y:.2f}px) scale({scale:.4f})", is_gliding, 1) == (transform, gliding, moved)


@pytest.mark.parametrize(
    ("x", "y", "is_seen"),
    [(20, 10, True), (580, 390, True), (19, 10, False), (20, 9, False), (581, 390, False), (580, 391, False)],
)
def test_a_card_is_seen_if_all_of_it_is(v8: MiniRacer, x: float, y: float, is_seen: bool) -> None:
    """Up to the sides of the view, and not beyond any of the four."""
    body = "const seen = viewport(1, 1); Object.assign(seen, { x: 0, y: 0, scale: 0.5 });"
    body += f" const of = card({2 * x}, {2 * y}, 80, 40);"
    assert told(v8, f"{body} return seen.sees(of.point, of.size);") is is_seen
    assert told(v8, f"{body} return seen.boxOf(of.point, of.size);") == [x - 20, y - 10, x + 20, y + 10]
    assert told(v8, f"{body} seen.pan(7, -3); return seen.boxOf(of.point, of.size);") == [x - 13, y - 13, x + 27, y + 7]


@pytest.mark.parametrize(
    ("cards", "x", "y"),
    [
        ("card(50, 30, 60, 20)", 0, 0),  # seen: nothing moves
        ("card(33, 200, 60, 20), card(567, 200, 60, 20)", 0, 0),  # both, just so
        (
            "card(32, 200, 60, 20)",
            12,
            0,
        ),  # nearer to the side than that: it goes to the middle, as far as there is a graph
        ("card(568, 200, 60, 20)", 300 - 568, 0),
        ("card(1000, 200, 60, 20)", 300 - 1000, 0),
        ("card(1990, 200, 60, 20)", 600 - 2000 - 12, 0),  # with a margin at the end
        ("card(200, 900, 60, 20)", 0, 200 - 900),
        ("card(200, 1495, 60, 20)", 0, 400 - 1500 - 12),
        ("card(200, 12, 60, 20)", 0, 12),
        ("card(900, 200, 60, 20), card(1100, 200, 60, 20)", 300 - 1000, 0),  # all of them, if there is room
        ("card(100, 200, 60, 20), card(1500, 200, 60, 20)", 300 - 1500, 0),  # or else the last
        ("card(1500, 200, 60, 20), card(100, 200, 60, 20)", 0, 0),
    ],
)
def test_following_a_step(v8: MiniRacer, cards: str, x: float, y: float) -> None:
    """What a step is about is brought into the middle, if it is not in sight; never past the end of the graph."""
    body = "const seen = viewport(2000, 1500); Object.assign(seen, { x: 0, y: 0, scale: 1 });"
    assert [x, y, 1] == told(v8, f"{body} seen.reveal([{cards}]); return at(seen);")
    # at half the size, the same: everything is as far again
    twice = "size.width *= 2; size.height *= 2; point.x *= 2; point.y *= 2;"
    half = body.replace("scale: 1", "scale: 0.5").replace("2000, 1500", "4000, 3000")
    halved = f"const cards = [{cards}]; for (const {{ point, size }} of cards) {{ {twice} }}"
    assert [x, y, 0.5] == told(v8, f"{half} {halved} seen.reveal(cards); return at(seen);")


def test_a_graph_that_fits_may_stand_anywhere(v8: MiniRacer) -> None:
    """It was moved out of sight by hand: the step comes to the middle."""
    body = "const seen = viewport(300, 200); Object.assign(seen, { x: 900, y: 40, scale: 1 });"
    assert told(v8, f"{body} seen.reveal([card(50, 30, 60, 20)]); return at(seen).slice(0, 2);") == [250, 40]


@pytest.mark.parametrize(("width", "x"), [(570, 250), (580, 12), (590, 12)])
def test_one_that_fits_with_its_margins_only(v8: MiniRacer, width: float, x: float) -> None:
    """What leaves no room for both margins is as one that is too large: it stays in the view."""
    body = f"const seen = viewport({width}, 200); Object.assign(seen, {{ x: 900, y: 40, scale: 1 }});"
    assert x == told(v8, f"{body} seen.reveal([card(50, 30, 60, 20)]); return seen.x;")


# ---------------------------------------------------------------- fingers, mouse and wheel


def test_dragging_moves_the_graph(v8: MiniRacer) -> None:
    """By as much as the pointer moves, from where it was pressed until it is let go; a leaf's card is no handle."""
    for end in ("pointerup", "pointercancel", "pointerleave"):
        found = told(
            v8,
            "const seen = viewport(400, 300); Object.assign(seen, { x: 0, y: 0 }); const found = [];"
            " const then = (...given) => { seen.hear(...given); found.push(seen.x, seen.y); };"
            " then('pointermove', 150, 80); then('pointerdown', 150, 80); then('pointermove', 157, 75);"
            f" then('pointermove', 160, 60); then('{end}', 160, 60); then('pointermove', 300, 300);"
            " then('pointerdown', 9, 9, { target: { closest: (what) => what === '.editable' } });"
            " then('pointermove', 90, 90); return found;",
        )
        assert found == [0, 0, 0, 0, 7, -5, 10, -20, 10, -20, 10, -20, 10, -20, 10, -20]


def test_two_fingers_zoom(v8: MiniRacer) -> None:
    """By as much as they go apart, around the one that stands still."""
    scale, before, after = told(
        v8,
        "const seen = viewport(400, 300); seen.hear('pointerdown', 200, 150); const from = seen.scale;"
        " const under = () => [(100 - seen.x) / seen.scale, (100 - seen.y) / seen.scale]; const before = under();"
        " seen.hear('pointerdown', 230, 190, { pointerId: 2 }); seen.hear('pointermove', 260, 230, { pointerId: 2 });"
        " return [seen.scale / from, before, under()];",
    )
    assert scale == pytest.approx(2)
    assert before == pytest.approx(after)
    together = "const seen = viewport(400, 300); seen.hear('pointerdown', 200, 150);"
    together += (
        " seen.hear('pointerdown', 200, 150, { pointerId: 2 }); seen.hear('pointermove', 202, 150, { pointerId: 2 });"
    )
    assert told(v8, f"{together} return seen.scale;") == pytest.approx(2 * 376 / 300)  # not by infinity


@pytest.mark.parametrize(
    ("given", "factor"),
    [
        ("{ deltaY: -5, ctrlKey: true }", 1.0512711), ("{ deltaY: 5, metaKey: true }", 0.9512294),
        ("{ deltaY: -120, ctrlKey: true }", 1.2214028), ("{ deltaY: 120, ctrlKey: true }", 0.8187308),
    ],
)  # fmt: skip
def test_the_wheel_zooms_with_ctrl(v8: MiniRacer, given: str, factor: float) -> None:
    """In small steps, one way and the other, around the pointer."""
    scale, is_taken, before, after = told(
        v8,
        "const seen = viewport(400, 300); const from = seen.scale;"
        " const under = () => [(100 - seen.x) / seen.scale, (200 - seen.y) / seen.scale]; const before = under();"
        f" const isTaken = seen.hear('wheel', 200, 250, {given});"
        " return [seen.scale / from, isTaken, before, under()];",
    )
    assert (factor, True) == (pytest.approx(scale, rel=1e-6), is_taken)
    assert before == pytest.approx(after)


@pytest.mark.parametrize(
    ("zoomed", "is_embedded", "taken"), [(1, False, False), (1.5, False, True), (1.5, True, False)]
)
def test_the_wheel_moves_what_is_larger_than_the_view(
    v8: MiniRacer, zoomed: float, is_embedded: bool, taken: bool
) -> None:
    """And scrolls the page where all of the graph is seen, or where it is in another page's frame."""
    found = told(
        v8,
        f"const seen = viewport(400, 300); seen.zoom({zoomed}); {'seen.takesWheel = false;' * is_embedded}"
        " const [x, y] = at(seen); const isTaken = seen.hear('wheel', 0, 0, { deltaX: 8, deltaY: 30 });"
        " return [seen.x - x, seen.y - y, isTaken];",
    )
    assert [-8 * taken, -30 * taken, taken] == pytest.approx(found)


def test_before_anything_is_known(v8: MiniRacer) -> None:
    """A page that has no size yet has a usual one, and stands at the beginning."""
    body = "const svg = { addEventListener() {} }; const seen = new module_viewport.Viewport(svg, {}, () => {});"
    assert told(v8, f"{body} return [...at(seen), seen.view.width, seen.view.height];") == [0, 0, 1, 800, 480]
