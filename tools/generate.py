"""Writes what follows from the two tables: ops.py and row_ops.py → C headers, docs/ops.md, the page's ops.js and
composites.js, the type stubs.

Run it with `make generate` after changing a row. A test runs it again and compares every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from generate_rows import (
    SIGNED,
    c_composites,
    composite_stub,
    described_rows,
    imports,
    javascript_composites,
    js_list,
    listed,
    mentions,
    overloads,
    quoted,
    row_forward_latex,
    row_local_grads_latex,
    spelled,
)

from gradwalk.agreement import RULE, STEPS, TINY_STEP
from gradwalk.formula import DEFINITIONS, Number, variable
from gradwalk.operation import Op, everywhere, never, nowhere
from gradwalk.ops import OPERATORS, OPS
from gradwalk.printing import JAVASCRIPT, C, Target, latex, statements
from gradwalk.row_ops import COMPOSITES

ROOT = Path(__file__).resolve().parent.parent
NOTICE = "do not edit; made by tools/generate.py from src/gradwalk/ops.py"


def symbols(op: Op) -> list[object]:
    return [variable(name) for name in op.names]


def body(formulas: list[object], target: Target, indent: str) -> tuple[str, list[str]]:
    lines, results = statements(formulas, target)
    return "".join(f"{indent}{line}\n" for line in lines), results


# ---------------------------------------------------------------- C


def c_definition(name: str) -> str:
    function = DEFINITIONS[name]
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    lines, (result,) = body([function(*map(variable, names))], C, "    ")
    arguments = ", ".join(f"double {argument}" for argument in names)
    kind = "SHARED" if len(lines + result) > 400 else "static inline"  # a long one is not copied to where it is used
    return f"{kind} double formula_{name}({arguments})\n{{\n{lines}    return {result};\n}}\n"


def c_function(kind: str, name: str, names: tuple[str, ...], formula: object) -> str:
    lines, (result,) = body([formula], C, "    ")
    arguments = ", ".join(f"double {n}" for n in names)
    text = f"{c_unused(names, lines + result)}{lines}    return {result};\n"
    return c_written(f"static inline {kind} {name}({arguments})", text)


def c_written(head: str, text: str) -> str:
    """The function; on one line where there is room for it."""
    short = f"{head} {{ {' '.join(text.split())} }}\n"
    return short if len(short) <= 120 else f"{head}\n{{\n{text}}}\n"


def c_unused(names: tuple[str, ...], text: str) -> str:
    """A statement for those names that the text does not mention, so that compilers do not warn of them."""
    ignored = ", ".join(f"(void){name}" for name in names if not mentions(text, name))
    return f"    {ignored};\n" if ignored else ""


def c_row(op: Op) -> str:
    arguments = ", ".join(f"double {name}" for name in op.names)
    names = symbols(op)
    parts = []
    if op.domain is not everywhere:
        parts.append(c_function("int", f"{op.name}_domain", op.names, op.domain(*names)))
    if op.edge_inputs:
        parts.append(c_function("double", f"{op.name}_edge_distance", op.names, op.edge(*names)))
    parts.append(c_function("double", f"{op.name}_forward", op.names, op.forward(*names)))
    lines, results = body(list(op.local_grads(*names, variable("out"))), C, "    ")
    stores = "".join(f"    local_grads[{i}] = {result};\n" for i, result in enumerate(results))
    ignored = c_unused((*op.names, "out"), lines + stores)
    head = f"static inline void {op.name}_local_grads({arguments}, double out, double *local_grads)"
    parts.append(c_written(head, f"{ignored}{lines}{stores}"))
    return "".join(parts)


def c_steep(op: Op) -> str:
    parameters = [variable(f"parameters[{i}]") for i in range(len(op.parameters))]
    return "".join(body([op.steep(*parameters)], C, "")[1])


def c_reads(op: Op) -> str:
    return "{" + ", ".join(c_mask(op, names) for names in op.reads) + "}"


def c_mask(op: Op, names: list[str]) -> str:
    return str(sum(1 << op.inputs.index(name) for name in names))


def definitions_in_order() -> list[str]:
    """Each defined function after those it uses."""
    done: list[str] = []
    while len(done) < len(DEFINITIONS):
        for name in DEFINITIONS:
            text = c_definition(name)
            uses = [other for other in DEFINITIONS if other != name and mentions(text, f"formula_{other}")]
            if name not in done and all(other in done for other in uses):
                done.append(name)
    return done


def c_formulas() -> str:
    in_order = "".join(c_definition(name) + "\n" for name in definitions_in_order())
    rows = "\n".join(c_row(op) for op in OPS.values())
    return f"""/* {NOTICE} */

#ifndef GRADWALK_FORMULAS_GENERATED_H
#define GRADWALK_FORMULAS_GENERATED_H

#include <math.h>

#include "internal.h"

/* ---- functions defined by a formula of their own ---- */

{in_order}/* ---- the {len(OPS)} rows ---- */

{rows}
#endif
"""


def c_header() -> str:
    def array(kind: str, name: str, entries: list[str]) -> str:
        return f"static {kind}{name}[OP_COUNT] = {{{', '.join(entries)}}};\n"

    def texts(name: str, entries: list[str]) -> str:
        """In place: a pointer to each would take more room than it, as it is filled in when the library is loaded."""
        room = max(len(entry.encode()) for entry in entries) + 1
        return f"static const char {name}[OP_COUNT][{room}] = {{{', '.join(map(quoted, entries))}}};\n"

    def inputs(op: Op) -> str:
        return ", ".join(f"in[{i}]" for i in range(len(op.names)))

    def domain(op: Op) -> str:
        return "1" if op.domain is everywhere else f"{op.name}_domain({inputs(op)})"

    steep = "".join(f"    case OP_{op.name}: return {c_steep(op)};\n" for op in OPS.values() if op.steep is not never)
    evaluations = "".join(f"    EVALUATED({op.name}, {domain(op)}, {inputs(op)})\n" for op in OPS.values())
    defaults = [
        ("{" + ", ".join(C.number(default) for default in op.defaults) + "}") if op.defaults else "{0}"
        for op in OPS.values()
    ]
    return f"""/* {NOTICE} */

#ifndef GRADWALK_OPS_GENERATED_H
#define GRADWALK_OPS_GENERATED_H

#include "formulas_generated.h"

enum op {{
    {", ".join(f"OP_{name}" for name in OPS)},
    OP_COUNT
}};

#define MOST_INPUTS {max(len(op.inputs) for op in OPS.values())}
#define MOST_NAMES {max(len(op.names) for op in OPS.values())}

#define FOR_EACH_OP(X) \\
    {" ".join(f"X({op.name}, {quoted(op.doc)})" for op in OPS.values())}

/* what comes before the documentation of a function, and of a method, so that Python can tell its signature */
{"".join(c_signatures(op) for op in OPS.values())}
#define FOR_EACH_ALIAS(X) \\
    {" ".join(f"X({op.name}, {alias})" for op in OPS.values() for alias in op.aliases)}

#define FOR_EACH_EDGE(X) \\
    {" ".join(f"X({op.name})" for op in OPS.values() if op.edge_inputs)}

{texts("op_names", list(OPS))}\
{texts("op_symbols", [op.symbol or op.name for op in OPS.values()])}\
{texts("op_arguments", [", ".join(op.names) for op in OPS.values()])}\
{array("const unsigned char ", "op_inputs", [str(len(op.inputs)) for op in OPS.values()])}\
{array("const unsigned char ", "op_parameters", [str(len(op.parameters)) for op in OPS.values()])}\
{array("const unsigned char ", "op_overflows", [str(int(op.overflows)) for op in OPS.values()])}\
{array("const unsigned char ", "op_chooses", [str(int(op.chooses)) for op in OPS.values()])}\
{array("const unsigned char ", "op_stops", [str(int(op.stops)) for op in OPS.values()])}\
{array("const unsigned char ", "op_checked", [str(int(op.checked)) for op in OPS.values()])}\
{array("const unsigned char ", "op_exact", [str(int(op.exact)) for op in OPS.values()])}\
/* a bit for each input that decides on which side of an edge it is: where the result, or a local gradient, changes at
 * once. The distance from there moves no faster than these inputs. */
{array("const unsigned char ", "op_edges", [c_mask(op, op.edge_inputs) for op in OPS.values()])}\
{array("const unsigned char ", "op_default_count", [str(len(op.defaults)) for op in OPS.values()])}\
/* of each local gradient, a bit for each input it looks at */
static const unsigned char op_reads[OP_COUNT][MOST_INPUTS] = {{{", ".join(map(c_reads, OPS.values()))}}};
static const double op_defaults[OP_COUNT][MOST_NAMES] = {{{", ".join(defaults)}}};

/* Whether a local gradient may be infinite although the result is finite. */
static inline int op_steep(enum op op, const double *parameters)
{{
    (void)parameters;
    switch ((unsigned)op) {{
{steep}    default: return 0; /* all others */
    }}
}}

#define EVALUATED(name, domain, ...) \\
    case OP_##name: \\
        *out = name##_forward(__VA_ARGS__); \\
        name##_local_grads(__VA_ARGS__, *out, local_grads); \\
        return domain;

/* Whether the inputs are inside the domain. */
SHARED int op_evaluate(enum op op, const double *in, double *out, double *local_grads)
{{
    switch ((unsigned)op) {{
{evaluations}    default: return 0; /* nothing is inside the domain of what is no operation */
    }}
}}
#undef EVALUATED

#endif
"""


# ---------------------------------------------------------------- JavaScript


def javascript_functions(op: Op) -> str:
    names = ", ".join(op.names)
    symbols_ = symbols(op)

    def method(name: str, arguments: str, formulas: list[object], result: str) -> str:
        lines, results = statements(formulas, JAVASCRIPT)
        inside = [*lines, f"return {result.replace('%s', ', '.join(results))};"]
        one_line = f"    {name}({arguments}) {{ {inside[0]} }},\n"
        if len(inside) == 1 and len(one_line) <= 120:
            return one_line
        return f"    {name}({arguments}) {{\n" + "".join(f"      {line}\n" for line in inside) + "    },\n"

    fields = {
        "called": op.called and quoted(op.called),
        "glyph": op.glyph and quoted(op.glyph),
        "operator": op.operator and "true",
        "aliases": op.aliases and js_list(op.aliases),
        "inputs": op.inputs != ("x",) and js_list(op.inputs),
        "parameters": op.parameters and js_list(op.parameters),
        "defaults": op.defaults and f"[{', '.join(map(JAVASCRIPT.number, op.defaults))}]",
        "overflows": op.overflows and "true",
        "chooses": op.chooses and "true",
        "stops": op.stops and "true",
        "doc": quoted(op.doc),
        "expected": op.expected and quoted(op.expected),
        "latex": quoted(forward_latex(op)),
        "localGradsLatex": js_list(local_grads_latex(op)),
    }
    return (
        f"  {op.name}: {{\n"
        + listed(fields)
        + ("" if op.domain is everywhere else method("domain", names, [op.domain(*symbols_)], "%s"))
        + method("forward", names, [op.forward(*symbols_)], "%s")
        + method("localGrads", f"{names}, out", list(op.local_grads(*symbols_, variable("out"))), "[%s]")
        + "  },\n"
    )


def js_definition(name: str, function: Callable[..., Number]) -> str:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    lines, (result,) = body([function(*map(variable, names))], JAVASCRIPT, "  ")
    return f"export function {name}({', '.join(names)}) {{\n{lines}  return {result};\n}}\n"


JS_PLAIN = """inputs: ["x"], parameters: [], defaults: [], aliases: [], operator: false, overflows: false, expected: "",
  domain: () => true"""


def javascript() -> str:
    rows = "".join(javascript_functions(op) for op in OPS.values())
    return f"""// {NOTICE}

{imports(rows)}{described_rows("OPS", rows, JS_PLAIN)}"""


def javascript_formulas() -> str:
    definitions = "\n".join(js_definition(name, DEFINITIONS[name]) for name in definitions_in_order())
    return f"// {NOTICE}\n\n{imports(definitions)}{definitions}"


def javascript_agreement() -> str:
    functions = "\n".join(js_definition(name, function) for name, function in RULE.items())
    notice = NOTICE.replace("ops.py", "agreement.py")
    steps, tiny = ", ".join(map(JAVASCRIPT.number, STEPS)), JAVASCRIPT.number(TINY_STEP)
    return f"// {notice}\n\nexport const STEPS = [{steps}];\nexport const TINY_STEP = {tiny};\n\n{functions}"


# ---------------------------------------------------------------- documentation


def forward_latex(op: Op) -> str:
    return latex((op.shown or op.forward)(*symbols(op)))


def local_grads_latex(op: Op) -> list[str]:
    local_grads = op.shown_local_grads or op.local_grads
    return [latex(local) for local in local_grads(*symbols(op), variable("out"))]


def with_default(parameters: tuple[str, ...], defaults: tuple[float, ...]) -> str:
    given = ", ".join(f"{name} = {default}" for name, default in zip(parameters, defaults, strict=False))
    return f" Default: {given}." if given else ""


def domain(expected: str) -> str:
    """Where an operation is defined: what its error says, with the signs of a book."""
    return expected.replace("<=", "≤").replace(">=", "≥").replace("-1", "−1") or "every number"


def documentation() -> str:
    newline = "\n"
    rows = []
    for op in OPS.values():
        locals_ = "".join(
            f"$$\\frac{{\\partial\\,\\mathit{{out}}}}{{\\partial {latex(variable(name))}}} = {local}$$\n\n"
            for name, local in zip(op.inputs, local_grads_latex(op), strict=True)
        )
        places = "".join(
            f" It {what} where ${latex(distance(*symbols(op)))} = 0$."
            for what, distance in (("jumps", op.jumps), ("has a kink", op.kinks))
            if distance is not nowhere
        )
        rows.append(
            f"## `{op.name}`\n\n{op.doc}\n\n$$\\mathit{{out}} = {forward_latex(op)}$$\n\n{locals_}"
            f"Defined for {domain(op.expected)}.{with_default(op.parameters, op.defaults)}{places}\n"
        )
    over_rows = []
    for row in COMPOSITES.values():
        locals_ = "".join(
            f"$$\\frac{{\\partial\\,\\mathit{{out}}}}{{\\partial {spelled(row)[name]}_{{j}}}} = {local}$$\n\n"
            for name, local in zip(row.inputs, row_local_grads_latex(row), strict=True)
        )
        shape = "One output for each entry `i`." if row.per_entry else "One output."
        over_rows.append(
            f"## `{row.called_by}`{' of a list' if row.called else ''}\n\n{row.doc.splitlines()[0]}\n\n"
            f"$$\\mathit{{out}} = {row_forward_latex(row)}$$\n\n"
            f"{locals_}{shape}{with_default(row.parameters, row.defaults)}\n"
        )
    return (
        f"<!-- {NOTICE} and row_ops.py -->\n\n# The table of operations\n\n"
        "Every operation with its forward formula and its local gradients: the numbers that both engines compute,\n"
        "in the form of a textbook. How they are computed, with the reasons, is said in `src/gradwalk/ops.py`.\n\n"
        f"{newline.join(rows)}\n# Operations over many numbers\n\n"
        "One node over a whole list, or one for each of its entries. The source is `src/gradwalk/row_ops.py`.\n\n"
        f"{newline.join(over_rows)}"
    )


# ---------------------------------------------------------------- type stub, and signatures


def c_signatures(op: Op) -> str:
    plain = str(op.signature)
    of_method = "($self" + plain.removeprefix(f"({op.names[0]}")
    lines = (f"{kind}_{op.name} {quoted(text + SIGNED)}" for kind, text in (("FUNCTION", plain), ("METHOD", of_method)))
    return "".join(f"#define SIGNATURE_OF_{line}\n" for line in lines)


def typed_parameters(op: Op) -> list[str]:
    defaults = [f" = {default}" for default in op.defaults] or [""] * len(op.parameters)
    return [f"{name}: float{default}" for name, default in zip(op.parameters, defaults, strict=True)]


def typed_inputs(op: Op, kinds: Sequence[str]) -> list[str]:
    return [f"{name}: {kind}" for name, kind in zip(op.inputs, kinds, strict=True)]


def op_stub(op: Op) -> str:
    """A Value where one of the inputs is a Value; of plain numbers a number."""
    forms = []
    for place in range(len(op.inputs)):
        kinds = ["Value" if i == place else "float" if i < place else "Number" for i in range(len(op.inputs))]
        forms.append((", ".join([*typed_inputs(op, kinds), *typed_parameters(op), "/"]), "Value"))
    kinds = ["float"] * len(op.inputs)
    forms.append((", ".join([*typed_inputs(op, kinds), *typed_parameters(op), "/"]), "float"))
    return overloads(op.name, forms, op.doc)


def functions_stub() -> str:
    others = {*OPERATORS, *(row.called for row in COMPOSITES.values()), "stop_gradient"}  # the last takes structures
    shown = [op for op in OPS.values() if op.name not in others]
    functions = [op_stub(op) for op in shown] + [composite_stub(row) for row in COMPOSITES.values()]
    rows = [f"rows: Iterable[Iterable[{kind}]], x: Iterable[{kind}]" for kind in ("float", "Number")]
    results = ("list[float]", "list[Value]")
    functions.append(overloads("matvec", list(zip(rows, results, strict=True)), "A dot with each row."))
    return (
        f"# {NOTICE} and row_ops.py\n"
        # a list of floats is a list of numbers too, and comes out otherwise
        '# mypy: disable-error-code="overload-overlap"\n\n'
        "from collections.abc import Iterable\nfrom typing import TypeVar, overload\n\n"
        'from gradwalk._native import Number, Value\n\n_T = TypeVar("_T")\n\n' + "".join(functions)
    )


def method_stub(name: str, op: Op) -> str:
    others = [*typed_inputs(op, ["Number"] * len(op.inputs))[1:], *typed_parameters(op)]
    return f"    def {name}({', '.join(['self', *others])}, /) -> Value: ...\n"


def stub() -> str:
    named = [(name, op) for op in OPS.values() if op.name not in OPERATORS for name in (op.name, *op.aliases)]
    methods = [method_stub(name, op) for name, op in named]
    template = (ROOT / "tools" / "native_stub.txt").read_text()
    return f"# {NOTICE} and tools/native_stub.txt\n\n" + template.replace("    METHODS\n", "".join(methods))


def outputs() -> dict[Path, str]:
    """Every generated file and what it should contain."""
    return {
        ROOT / "src/gradwalk/native/formulas_generated.h": c_formulas(),
        ROOT / "src/gradwalk/native/ops_generated.h": c_header(),
        ROOT / "src/gradwalk/native/composites_generated.h": c_composites(),
        ROOT / "src/gradwalk/show/page/formulas.js": javascript_formulas(),
        ROOT / "src/gradwalk/show/page/ops.js": javascript(),
        ROOT / "src/gradwalk/show/page/composites.js": javascript_composites(),
        ROOT / "src/gradwalk/show/page/agreement.js": javascript_agreement(),
        ROOT / "src/gradwalk/_native.pyi": stub(),
        ROOT / "src/gradwalk/functions.pyi": functions_stub(),
        ROOT / "docs/ops.md": documentation(),
    }


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
