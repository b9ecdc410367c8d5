"""What follows from the second table, row_ops.py: see generate.py, which writes it down."""

from __future__ import annotations

import json
import re

from gradwalk.formula import DEFINITIONS, Symbol, variable
from gradwalk.operation import nowhere
from gradwalk.printing import JAVASCRIPT, C, latex
from gradwalk.row_formula import Loops, RowVariable, Spelling, is_row, row_latex
from gradwalk.row_ops import COMPOSITES, Composite, in_rows

ROW_NOTICE = "do not edit; made by tools/generate.py from src/gradwalk/row_ops.py"
C_LOOPS = Spelling(C, "double", "const double", "ptrdiff_t", "(double)n", "(ptrdiff_t)")
JAVASCRIPT_LOOPS = Spelling(JAVASCRIPT, "let", "const", "let", "n", "")


# the page's own modules of functions, and what generated ones take from them
LIBRARIES = {
    "formulas.js": tuple(DEFINITIONS),
    "rounded.js": ("acos", "acosh", "asin", "asinh", "atan", "atan2", "cos", "cosh", "exp", "log", "log10", "log2",
                   "sin", "tan"),
    "special.js": ("copysign", "pow"),
}  # fmt: skip


def imports(text: str) -> str:
    """What a module has to import for the functions that it calls and does not have."""
    called = set(re.findall(r"(?<![.\w])\w+(?=\()", text)) - set(re.findall(r"function (\w+)", text))
    found = {module: sorted(called & set(names)) for module, names in LIBRARIES.items()}
    lines = [f'import {{ {", ".join(names)} }} from "./{module}";\n' for module, names in found.items() if names]
    return "".join(lines) + "\n" if lines else ""


def mentions(text: str, name: str) -> bool:
    padded = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return name in padded.split()


def quoted(text: str) -> str:
    """A literal of JavaScript, and of C."""
    return json.dumps(text, ensure_ascii=False)


def js_list(texts: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(map(quoted, texts)) + "]"


def docstring(doc: str) -> str:
    """Its first line as Python's, whatever is quoted in it."""
    return '"""' + doc.splitlines()[0].replace("\\", "\\\\").replace('"', '\\"') + '"""'


# ---------------------------------------------------------------- C


def c_composite_functions(row: Composite) -> str:
    """name_keep, name_forward and name_local_grads over rows of n numbers."""
    numbers = [part for part in row.kept if not is_row(part)]
    rows = [part for part in row.kept if is_row(part)]
    if [*numbers, *rows] != list(row.kept):
        raise TypeError(f"{row.name}: expected the numbers that it keeps before the rows")
    spelled = {name: Symbol(f"parameters[{i}]") for i, name in enumerate(row.parameters)}
    spelled |= {name: RowVariable(pointer) for name, pointer in zip(row.inputs, ("xs", "ys"), strict=False)}
    given = [spelled.get(name, variable(name)) for name in row.names]
    parts = []
    if row.kept:
        made = row.keeps(*row.but_for_the_place(given))
        loops = Loops(C_LOOPS)
        for i, part in enumerate(made[len(numbers) :]):
            loops.store(part, f"kept_{i}[j]")
            loops.names[id(part)] = f"kept_{i}"
        texts = [loops.number(part) for part in made[: len(numbers)]]
        lines = [*loops.lines, *(f"kept[{i}] = {text};" for i, text in enumerate(texts))]
        if keeper(row) == row.name:
            head = f"void {row.name}_keep({ROWS}, const double *parameters, double *kept)"
            parts.append(c_loops(head, lines, row, ""))
    kept = [Symbol(f"kept[{i}]") for i in range(len(numbers))]
    kept += [RowVariable(f"kept_{i}") for i in range(len(rows))]
    loops = Loops(C_LOOPS)
    result = loops.number(row.forward(*given, *kept))
    lines = [*loops.lines, f"return {result};"]
    parts.append(c_loops(f"double {row.name}_row_forward({ROWS}, {OUTPUT})", lines, row, "const "))
    loops = Loops(C_LOOPS)
    for i, part in enumerate(in_rows(row.local_grads(*given, *kept, variable("out")))):
        loops.store(part, f"local_grads[{'n + ' if i else ''}j]")
    head = f"void {row.name}_row_local_grads({ROWS}, {OUTPUT}, double out, double *local_grads)"
    parts.append(c_loops(head, loops.lines, row, "const "))
    if row.edges is not nowhere:
        loops = Loops(C_LOOPS)
        result = loops.number(row.edges(*row.but_for_the_place(given)))
        head = f"double {row.name}_row_edge({ROWS}, const double *parameters)"
        parts.append(c_loops(head, [*loops.lines, f"return {result};"], row, ""))
    return "\n".join(parts)


def keeper(row: Composite) -> str:
    """The first composite that keeps the same."""
    return next(other.name for other in COMPOSITES.values() if other.keeps is row.keeps)


ROWS = "ptrdiff_t n, const double *xs, const double *ys"
OUTPUT = "ptrdiff_t i, const double *parameters, const double *kept"


def c_loops(head: str, lines: list[str], row: Composite, const: str) -> str:
    text = "".join(f"    {line}\n" for line in lines)
    numbers = sum(not is_row(part) for part in row.kept)
    pointers = [(i, f"kept + {numbers}" + (f" + {i} * n" if i else "")) for i in range(len(row.kept) - numbers)]
    rows = "".join(f"    {const}double *kept_{i} = {start};\n" for i, start in pointers if mentions(text, f"kept_{i}"))
    names = [name.split()[-1].lstrip("*") for name in head[head.index("(") + 1 : -1].split(",")]
    ignored = ", ".join(f"(void){name}" for name in names if not mentions(rows + text, name))
    unused = f"    {ignored};\n" if ignored else ""
    head = head.replace(OUTPUT, "OUTPUT").replace(ROWS, "ROWS")
    return f"static inline {head}\n{{\n{unused}{rows}{text}}}\n"


def c_composite(row: Composite) -> str:
    kept_rows = sum(map(is_row, row.kept))
    defaults = ", ".join(map(C.number, row.defaults)) or "0"
    facts = {
        "name": quoted(row.name),
        "called": quoted(row.called_by),
        "arguments": "{" + ", ".join(map(quoted, row.arguments)) + "}",
        "inputs": len(row.inputs),
        "per_entry": int(row.per_entry),
        "has_target": int(bool(row.target)),
        "parameters": len(row.parameters),
        "default_count": len(row.defaults),
        "defaults": f"{{{defaults}}}",
        "kept_numbers": len(row.kept) - kept_rows,
        "kept_rows": kept_rows,
        "is_logarithm": int(row.is_logarithm),
        "chooses": int(row.chooses),
        "checked": int(row.checked),
        "keep": f"{keeper(row)}_keep" if row.kept else "NULL",
        "forward": f"{row.name}_row_forward",
        "local_grads": f"{row.name}_row_local_grads",
        "edge": "NULL" if row.edges is nowhere else f"{row.name}_row_edge",
    }
    return "    {" + ", ".join(f".{name} = {fact}" for name, fact in facts.items()) + "},\n"


def c_composites() -> str:
    return f"""/* {ROW_NOTICE} */

#ifndef GRADWALK_COMPOSITES_GENERATED_H
#define GRADWALK_COMPOSITES_GENERATED_H

#include <stddef.h>

#include "ops_generated.h"

/* Composites follow the table's operations in the numbering of ops. */
enum composite {{
    COMPOSITE_BASE = OP_COUNT - 1,
    {", ".join(f"COMPOSITE_{name}" for name in COMPOSITES)},
    NO_OP /* leaves and nodes made by hand */
}};
#define COMPOSITE_COUNT (NO_OP - OP_COUNT)

#define FOR_EACH_COMPOSITE(X) \\
    {" ".join(f"X({row.name}, {quoted(described(row))})" for row in COMPOSITES.values())}

/* Over rows of n numbers: one, or two of the same length (else `ys` is not read). `kept` is what the outputs over one
 * row share: numbers first, then rows of n. */
#define ROWS {ROWS}
#define OUTPUT {OUTPUT}

typedef struct {{
    const char *name, *called; /* as people know it */
    const char *arguments[4];  /* what a caller gives, by name */
    unsigned char inputs;      /* how many rows */
    unsigned char per_entry;   /* an output for each entry: `i` says which */
    unsigned char has_target;  /* the caller says `i` */
    unsigned char parameters, default_count;
    double defaults[2];
    unsigned char kept_numbers, kept_rows;
    unsigned char is_logarithm; /* rounding has to be measured against 1, however small the result is */
    unsigned char chooses;      /* what has no part in the result gets no gradient, not even nan */
    unsigned char checked;      /* what comes out has to be finite */
    void (*keep)(ROWS, const double *parameters, double *kept); /* NULL where nothing is kept */
    double (*forward)(ROWS, OUTPUT);
    void (*local_grads)(ROWS, OUTPUT, double out, double *local_grads);
    double (*edge)(ROWS, const double *parameters); /* how far to where something changes at once; NULL: nowhere */
}} Composite;

{chr(10).join(map(c_composite_functions, COMPOSITES.values()))}
static const Composite composites[COMPOSITE_COUNT] = {{
{"".join(map(c_composite, COMPOSITES.values()))}}};

#undef ROWS
#undef OUTPUT
#endif
"""


# ---------------------------------------------------------------- JavaScript


def javascript_loops(row: Composite, formulas: tuple[object, ...], name: str, arguments: tuple[str, ...]) -> str:
    loops = Loops(JAVASCRIPT_LOOPS)
    if name == "forward":
        result = loops.number(formulas[0])
        lines = [*loops.lines, f"return {result};"]
    else:
        for i, part in enumerate(formulas):
            loops.store(part, f"localGrads[{'n + ' if i else ''}j]")
        lines = ["const localGrads = [];", *loops.lines, "return localGrads;"]
    first = row.inputs[0]
    if len(row.inputs) == 1:
        lines.insert(0, f"const n = {first}.length;")
    else:
        halves = [f"const {each} = all.slice({i} * n, {i + 1} * n);" for i, each in enumerate(row.inputs)]
        lines[:0] = [f"const n = all.length / {len(row.inputs)};", *halves]
        first = "all"
    text = "".join(f"      {line.replace('    ', '  ')}\n" for line in lines)
    return f"    {name}({', '.join((first, *arguments))}) {{\n{text}    }},\n"


def javascript_composite(row: Composite) -> str:
    rest = row.names[len(row.inputs) :]
    forward = javascript_loops(row, (row.output,), "forward", rest)
    local_grads = javascript_loops(row, row.slopes, "localGrads", (*rest, "out"))
    others, chosen = (row_local_grads_latex(row, is_hot) for is_hot in (False, True))
    fields = {
        "called": row.called and quoted(row.called),
        "glyph": row.glyph and quoted(row.glyph),
        "inputs": row.inputs != ("xs",) and js_list(row.inputs),
        "parameters": row.parameters and js_list(row.parameters),
        "perEntry": row.per_entry and "true",
        "chooses": row.chooses and "true",
        "target": row.target and quoted(row.target),
        "doc": quoted(row.doc.splitlines()[0]),
        "latex": quoted(row_forward_latex(row)),
        "localGradsLatex": js_list(others),
        "hotLatex": chosen != others and js_list(chosen),
    }
    return f"  {row.name}: {{\n{listed(fields)}{forward}{local_grads}  }},\n"


def listed(fields: dict[str, str | bool | tuple[str, ...]]) -> str:
    """What a row says; what most of them say is left out."""
    return "".join(f"    {name}: {text},\n" for name, text in fields.items() if text)


def described_rows(name: str, rows: str, plain: str) -> str:
    """The rows by name, with what they leave out."""
    return f"""const PLAIN = {{ {plain} }};

export const {name} = Object.fromEntries(Object.entries({{
{rows}}}).map(([name, row]) => [name, {{ called: name, glyph: name, ...PLAIN, ...row }}]));
"""


def javascript_composites() -> str:
    rows = "".join(javascript_composite(row) for row in COMPOSITES.values())
    return f"""// {ROW_NOTICE}

{imports(rows)}{described_rows("COMPOSITES", rows, 'inputs: ["xs"], parameters: [], perEntry: false, target: ""')}"""


# ---------------------------------------------------------------- for people

LETTERS = {"eps": r"\epsilon"}


def spelled(row: Composite) -> dict[str, str]:
    """How the variables of a row's formulas look in LaTeX."""
    named = dict(zip(row.inputs, "xy", strict=False))
    return named | {
        name: LETTERS.get(name) or latex(variable(name)) for name in (*row.names, "out") if name not in named
    }


def row_forward_latex(row: Composite) -> str:
    return row_latex(row.shown_output, spelled(row))


def row_local_grads_latex(row: Composite, is_hot: bool | None = None) -> list[str]:
    """For each input; `is_hot`: by the entry that was chosen, or by another."""
    return [row_latex(slope, spelled(row), inside_row=True, is_hot=is_hot) for slope in row.shown_slopes]


SIGNED = "\n--\n\n"  # after a signature, in what Python wants from C as documentation


def described(row: Composite) -> str:
    """The signature and the documentation, as Python wants them from C."""
    return f"{row.name}{row.signature}{SIGNED}{row.doc}"


def overloads(name: str, forms: list[tuple[str, str]], doc: str) -> str:
    """A function's forms for a stub: each its arguments and what comes out; the documentation is the last one's."""
    first = [f"@overload\ndef {name}({given}) -> {result}: ...\n" for given, result in forms[:-1]]
    given, result = forms[-1]
    return "".join(first) + f"@overload\ndef {name}({given}) -> {result}:\n    {docstring(doc)}\n\n"


def composite_stub(row: Composite) -> str:
    """Of plain numbers it is a number, or a list of them; else Values."""
    if row.name == "take":
        return f"def take(rows: Iterable[_T], index: int) -> _T:\n    {docstring(row.doc)}\n\n"
    forms = []
    for kind, out in (("float", "float"), ("Number", "Value")):
        if row.called:
            forms += [(f"xs: Iterable[{kind}], /", out), (f"*xs: {kind}", out)]
            continue
        kinds = dict.fromkeys(row.inputs, f"Iterable[{kind}]") | {row.target: "int"}
        given = [
            f"{each.name}: {kinds.get(each.name, 'float')}"
            + ("" if each.default is each.empty else f" = {each.default}")
            for each in row.signature.parameters.values()
        ]
        forms.append((", ".join(given), f"list[{out}]" if row.per_entry else out))
    return overloads(row.called_by, forms, row.doc)
