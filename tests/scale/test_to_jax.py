"""A program as a jax function: the native executor's numbers and gradients, guards, and jax's own transformations."""

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import MODELS, Model, scalar_gpt, unstructured

import gradwalk
from gradwalk.compiler.strided import nested_loops
from gradwalk.compiler.to_jax import MANY, _apart, _strided, gathered
from gradwalk.ops import OPS
from gradwalk.row_ops import COMPOSITES


def documented_gpt() -> Model:
    """The GPT of the documents, at weights where every gradient is there."""
    model = gradwalk.nn.GPT(seed=1)
    rng = np.random.default_rng(1)
    for parameter in model.parameters():
        parameter.data = rng.normal(0.0, 0.05)
    return lambda tokens: model.loss(tokens), ([26, 0, 3, 0, 5, 6, 7, 8, 26],), model.parameters()


GENERATED = {
    **MODELS,
    "random graph": lambda: unstructured(100),  # of 2,000 nodes, XLA takes two minutes
    "scalar GPT": scalar_gpt,
    "nn.GPT": documented_gpt,
}


def native_numbers(exported, arguments):
    """The value, and the gradients by the leaves (in the order of the export) and by the arguments."""
    run = exported._version.used(lambda run, numbers, _: (run.forward(numbers), run), arguments)
    assert run[0] is None
    outputs = run[1].outputs()
    gradient = run[1].gradients(np.ones((1, len(outputs))))[0]
    place = {id(leaf): place for place, leaf in enumerate(run[1].leaves)}
    by_leaf = gradient[len(arguments) :][[place[id(leaf)] for leaf in exported.leaves]] if exported.leaves else []
    return outputs, np.array(by_leaf), gradient[: len(arguments)]


def assert_alike(compiled, args):
    """By jax as by the native executor, gradients relative to their largest."""
    exported = compiled.to_jax(*args)
    arguments = exported.arguments(*args)
    compute = jax.jit(jax.value_and_grad(lambda *at: (exported(*at)[0].sum(), exported(*at)), (0, 1), has_aux=True))
    (_, (outputs, holds)), (by_leaf, by_argument) = compute(exported.numbers(), arguments)
    assert bool(holds)
    expected = native_numbers(exported, arguments)
    for ours, theirs in zip(expected, (jnp.atleast_1d(outputs), by_leaf, by_argument), strict=True):
        assert np.abs(ours - theirs).max(initial=0.0) <= 1e-12 * np.abs(ours).max(initial=0.0)


@pytest.mark.parametrize("name", GENERATED)
def test_models(name):
    """Ten models and two GPTs: values and gradients to 1e-12."""
    function, args, _ = GENERATED[name]()
    compiled = gradwalk.compile(function)
    assert_alike(compiled, args)


def rows_of(name):
    """A function that applies a row of the table at each of its samples, and the numbers that it takes."""
    op = OPS[name]
    apply = gradwalk.engine.load("native").FUNCTIONS[name]
    width = len(op.inputs)
    samples = []
    for sample in op.samples:  # where a slope is infinite, and where it raises, are tests of their own
        given = sample if isinstance(sample, tuple) else (sample,)
        numbers, parameters = given[:width], given[width:] or op.defaults
        try:
            out = apply(*map(gradwalk.Value, numbers), *parameters)
        except ValueError:
            continue
        if np.isfinite(out._local_grads).all():
            samples.append((numbers, parameters))

    def function(rows):
        return [apply(*row, *parameters) for row, (_, parameters) in zip(rows, samples, strict=True)]

    return function, [list(numbers) for numbers, _ in samples]


@pytest.mark.parametrize("name", sorted(OPS))
def test_rows(name):
    """Every row of the table, at its samples."""
    function, rows = rows_of(name)
    assert rows
    exported = gradwalk.compile(function).to_jax(rows)
    arguments = exported.arguments(rows)
    outputs, pull = jax.vjp(lambda at: exported(np.zeros(0), at)[0], arguments)
    expected, _, by_argument = native_numbers(exported, arguments)
    assert np.allclose(expected, outputs, rtol=1e-12, atol=1e-300)
    assert np.allclose(by_argument, pull(jnp.ones_like(outputs))[0], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", sorted(set(COMPOSITES) - {"take", "cross_entropy", "dot"}))
def test_composites(name):
    """Every composite over rows, ties among them."""
    apply = vars(gradwalk)[COMPOSITES[name].called_by]
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=5).tolist() for _ in range(3)] + [[1.0, 2.0, 2.0, -1.0, 2.0], [-1.0, -1.0, 3.0, 0.0, -1.0]]
    weights = rng.normal(size=5).tolist()

    def function(rows):
        made = [apply(row) for row in rows]
        return [gradwalk.dot(one, weights) if isinstance(one, list) else one for one in made]

    assert_alike(gradwalk.compile(function), (rows,))


@pytest.mark.parametrize("target", [0, 2])
def test_composites_with_a_place(target):
    """take, dot and cross_entropy, whose places stay open."""
    table = [[gradwalk.Value(0.3 * i - 0.2 * j) for j in range(4)] for i in range(3)]

    def function(index, xs):
        return gradwalk.cross_entropy([gradwalk.dot(gradwalk.take(table, index), xs), xs[0], xs[1] * xs[2]], index)

    compiled = gradwalk.compile(function)
    assert_alike(compiled, (target, [0.5, -1.0, 2.0, 0.25]))
    exported = compiled.to_jax(1, [0.5, -1.0, 2.0, 0.25])
    assert bool(exported(exported.numbers(), exported.arguments(target, [0.5, -1.0, 2.0, 0.25]))[1])
    assert not bool(exported(exported.numbers(), jnp.array([3.0, 0.5, -1.0, 2.0, 0.25]))[1])  # no such row


def test_a_guard_that_fails():
    """The function says so, and `map` hands those inputs back to Python."""
    scale = gradwalk.Value(3.0)
    compiled = gradwalk.compile(lambda x: x * scale if x * x > 2.0 else x - 1.0)
    exported = compiled.to_jax(2.0)
    value, holds = jax.jit(exported)(exported.numbers(), jnp.array([2.0]))
    assert (float(value), bool(holds)) == (6.0, True)
    assert not bool(jax.jit(exported)(exported.numbers(), jnp.array([1.0]))[1])
    assert exported.map([2.0, 1.0, -4.0, 0.5]) == [6.0, 0.0, -12.0, -0.5]


def test_a_comparison_too_close_to_tell():
    """Sums in another order may compare otherwise than the plain function's: that is no answer."""
    compiled = gradwalk.compile(lambda xs: xs[0] if sum(xs) > 1.0 else xs[1])
    exported = compiled.to_jax([1.0, 2.0, 3.0])
    assert bool(exported(np.zeros(0), jnp.array([1.0, 2.0, 3.0]))[1])
    assert not bool(exported(np.zeros(0), jnp.array([0.1, 0.2, 0.7]))[1])


def test_an_operation_that_would_raise():
    """Outside its domain the plain function raises: the export says that it does not hold, and `map` raises."""
    exported = gradwalk.compile(lambda x: gradwalk.log(x) * 2.0).to_jax(2.0)
    assert not bool(exported(np.zeros(0), jnp.array([-1.0]))[1])
    with pytest.raises(ValueError, match="log: expected x > 0"):
        exported.map([1.0, -1.0])


def test_integers_that_the_trace_fixed():
    """`range(n)` is a program for one n."""
    exported = gradwalk.compile(lambda x, n: sum(x**k for k in range(n))).to_jax(2.0, 3)
    assert float(exported(np.zeros(0), jnp.array([2.0, 3.0]))[0]) == 7.0
    assert not bool(exported(np.zeros(0), jnp.array([2.0, 4.0]))[1])
    assert exported.map([(2.0, 3), (2.0, 4)]) == [7.0, 15.0]


def test_nothing_comes_to_an_infinite_slope():
    """At 0 the slope of sqrt is infinite; where its gradient is 0, 0 is handed on, else infinity."""
    exported = gradwalk.compile(lambda x, y: gradwalk.sqrt(x) * y).to_jax(4.0, 2.0)
    slope = jax.grad(lambda at: exported(np.zeros(0), at)[0])
    assert slope(jnp.array([0.0, 0.0])).tolist() == [0.0, 0.0]
    assert slope(jnp.array([0.0, 1e-300])).tolist() == [np.inf, 0.0]


def test_transformations():
    """jit, vmap, forward and reverse mode, and both on top of each other."""
    weight = gradwalk.Value(0.5)
    compiled = gradwalk.compile(lambda xs: gradwalk.sigmoid(weight * xs[0]) * xs[1] ** 3 + gradwalk.tanh(xs[0]))
    exported = compiled.to_jax([0.3, 2.0])
    of_arguments = lambda at: exported(exported.numbers(), at)[0]  # noqa: E731
    at = jnp.array([0.3, 2.0])
    hessian = jax.jit(jax.hessian(of_arguments))(at)
    assert np.allclose(hessian, gradwalk.hessian(compiled)([0.3, 2.0]), rtol=1e-12)
    assert np.allclose(jax.jacfwd(of_arguments)(at), jax.jacrev(of_arguments)(at), rtol=1e-13)
    many = jax.vmap(jax.grad(of_arguments))(jnp.stack([at, 2 * at]))
    assert np.allclose(many[1], compiled.value_and_grad([0.6, 4.0])[1], rtol=1e-12)


def pairs(xs):
    """Reads its numbers crosswise, some of them thrice, and nothing in between: a table of places."""
    near = [gradwalk.tanh(x) for x in xs]
    return gradwalk.sum([near[i] * near[j] for i, j in ((0, 3), (2, 0), (5, 0), (7, 2), (1, 6), (6, 4))])


def test_gathers():
    """Their way back is a gather, too: scatters neither fuse, nor do they add in the same order each time."""
    compiled, at = gradwalk.compile(pairs), np.linspace(-1.0, 1.0, 8)
    exported = compiled.to_jax(at.tolist())
    value = lambda at: exported(exported.numbers(), at)[0]  # noqa: E731
    assert np.allclose(jax.grad(value)(at), compiled.value_and_grad(at.tolist())[1], rtol=1e-13)
    assert np.allclose(jax.hessian(value)(at), gradwalk.hessian(compiled)(at.tolist()), rtol=1e-12, atol=1e-14)
    assert np.allclose(jax.jacfwd(value)(at), jax.jacrev(value)(at), rtol=1e-13)
    assert np.allclose(jax.vmap(jax.grad(value), in_axes=1)(np.stack([at, at], axis=1))[1], jax.grad(value)(at))
    text = jax.jit(jax.grad(value)).lower(at).as_text()
    assert "gather" in text
    assert "scatter" not in text


def test_one_place_that_many_read():
    """A table for the way back would be nearly empty: that is a scatter."""
    source = jnp.array([2.0, 3.0, 5.0, 7.0] * 10)
    places = np.array([0] * 20 + [40, 1])
    assert gathered(source, places).tolist() == [2.0] * 20 + [0.0, 3.0]
    slopes = jax.grad(lambda xs: (gathered(xs, places) * np.arange(22.0)).sum())(source)
    assert slopes.tolist() == [190.0, 21.0] + [0.0] * 38


def test_gathers_over_a_mesh():
    exported = gradwalk.compile(pairs).to_jax([0.5] * 8)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    spec = jax.sharding.PartitionSpec
    slopes = jax.vmap(jax.grad(lambda at: exported(np.zeros(0), at)[0]))
    shared = jax.shard_map(slopes, mesh=mesh, in_specs=spec("batch"), out_specs=spec("batch"))
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(4, 8)))
    assert np.allclose(jax.jit(shared)(rows), slopes(rows), rtol=1e-14)


def test_over_a_mesh():
    """shard_map splits a batch over the devices there are."""
    exported = gradwalk.compile(lambda xs: xs[0] * xs[1]).to_jax([1.0, 2.0])
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    spec = jax.sharding.PartitionSpec
    batched = jax.vmap(exported, in_axes=(None, 0))
    shared = jax.shard_map(batched, mesh=mesh, in_specs=(spec(), spec("batch")), out_specs=spec("batch"))
    assert jax.jit(shared)(np.zeros(0), jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0].tolist() == [2.0, 12.0]


def test_single_precision():
    """It computes in the precision of what it is given."""
    exported = gradwalk.compile(lambda x: gradwalk.exp(x) * 2.0).to_jax(1.0)
    outputs, _ = exported(jnp.zeros(0, jnp.float32), jnp.array([1.0], jnp.float32))
    assert outputs.dtype == jnp.float32
    assert abs(float(outputs) - 2 * np.e) < 1e-6


def test_refusals():
    """What is no program for jax is an error that says why."""
    with pytest.raises(ValueError, match=r"expected arrays of shapes \(0,\) and \(1,\), got \(0,\) and \(2,\)"):
        gradwalk.compile(lambda x: x * 2.0).to_jax(1.0)(np.zeros(0), np.zeros(2))
    with pytest.raises(TypeError, match="plain numbers as arguments"):
        gradwalk.compile(lambda x: x * 2.0).to_jax(gradwalk.Value(1.0))
    with pytest.raises(ValueError, match="same structure"):
        gradwalk.compile(lambda x: x[0] * 2.0).to_jax([1.0]).arguments([1.0, 2.0])
    halved = gradwalk.custom_op(lambda x: x / 2, lambda x, out: (0.5,))
    with pytest.raises(TypeError, match="an operation of your own"):
        gradwalk.compile(lambda x: halved(x * 3.0)).to_jax(1.0)


def test_too_many_instructions():
    """There is a warning before XLA takes minutes, and none before that."""
    function, args, _ = unstructured(2000)
    with pytest.warns(RuntimeWarning, match="different instructions; XLA may take minutes"):
        gradwalk.compile(function).to_jax(*args)
    function, args, _ = MODELS["spring chain"]()  # 141 instructions, 8 kinds of them
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exported = gradwalk.compile(function).to_jax(*args)
    assert len(exported.program.instructions) > MANY


@pytest.mark.parametrize(
    "loops", [[(3, 4), (2, 1)], [(2, 1), (3, 5)], [(2, 12), (3, 0), (2, 3), (3, 1)], [(4, 0)], [(2, 3), (3, 2)]]
)
def test_slices_for_loops(loops):
    """Nested loops are found in a table of slots, and read as slices: all of them, or those that do not overlap."""
    piece = np.arange(40.0) + 0.5
    slots = np.array([7])
    for count, stride in loops:
        slots = (slots[:, None] + stride * np.arange(count)).ravel()
    found = nested_loops(slots)
    assert found is not None
    if _apart(found):
        assert _strided(jnp.asarray(piece), 7, found).ravel().tolist() == piece[slots].tolist()
    else:
        assert loops == [(2, 3), (3, 2)]


READER = """
import sys
sys.modules["gradwalk"] = None  # whoever imports it fails
import numpy as np, jax
from jax import export
jax.config.update("jax_enable_x64", True)
f = export.deserialize(open(sys.argv[1], "rb").read())
leaves, rows = np.load(sys.argv[2]), np.load(sys.argv[3])
values, holds = f.call(leaves, rows)
slopes = jax.grad(lambda leaves: f.call(leaves, rows)[0].sum())(leaves)
print(*[float(v).hex() for v in values], *map(bool, holds), float(slopes.sum()).hex())
"""


def test_export(tmp_path):
    """Another process reads the file without gradwalk, for a batch of any size, with gradients."""
    function, (tokens,), _ = documented_gpt()
    compiled = gradwalk.compile(function)
    exported = compiled.to_jax(tokens)
    compiled.export(tmp_path / "gpt.stablehlo", tokens)
    assert (tmp_path / "gpt.stablehlo").stat().st_size < 400_000
    compiled.export(tmp_path / "again.stablehlo")  # the program used last
    other = [26, 1, 2, 3, 4, 5, 6, 7, 26]
    rows = np.array([exported.arguments(each) for each in (tokens, other, [99, *tokens[1:]])])
    np.save(tmp_path / "leaves.npy", exported.numbers())
    np.save(tmp_path / "rows.npy", rows)
    for name, batch in (("gpt", rows), ("again", rows[:1])):
        np.save(tmp_path / "rows.npy", batch)
        given = [sys.executable, "-c", READER, str(tmp_path / f"{name}.stablehlo")]
        given += [str(tmp_path / "leaves.npy"), str(tmp_path / "rows.npy")]
        made = subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()
        values = [float.fromhex(each) for each in made[: len(batch)]]
        assert made[len(batch) : -1] == ["True", "True", "False"][: len(batch)]
        with gradwalk.no_grad():
            expected = compiled.map([tokens, other])[: len(batch)]
        assert np.allclose(values[:2], expected, rtol=1e-12)
