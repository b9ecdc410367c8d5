"""Formulas in LaTeX, as the table prints them, to MathML, which browsers draw by themselves.

Only what `formula.py` writes and the lessons use is known; anything else is an error of the build.
"""

from __future__ import annotations

import html
import re

_TOKEN = re.compile(r"(?<=\\text){[^}]*}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?(?:e-?\d+)?|[a-zA-Z]|\S")
_SYMBOLS = {
    r"\partial": "<mi>∂</mi>", r"\epsilon": "<mi>ε</mi>", r"\sigma": "<mi>σ</mi>", r"\pi": "<mi>π</mi>",
    r"\le": "<mo>≤</mo>", r"\ge": "<mo>≥</mo>", r"\vee": "<mo>∨</mo>", r"\wedge": "<mo>∧</mo>",
    r"\cdot": "<mo>·</mo>", r"\infty": "<mi>∞</mi>",
    r"\lfloor": "<mo>⌊</mo>", r"\rfloor": "<mo>⌋</mo>", r"\lceil": "<mo>⌈</mo>", r"\rceil": "<mo>⌉</mo>",
    r"\sum": "<mo>∑</mo>", r"\,": '<mspace width="0.17em"/>', r"\to": "<mo>→</mo>",
    r"\approx": "<mo>≈</mo>", r"\times": "<mo>×</mo>", r"\mu": "<mi>μ</mi>",
}  # fmt: skip
_FUNCTION = re.compile(r"\\(exp|log|(arc)?(sin|cos|tan)h?|min|max)")


class FormulaError(ValueError):
    """A formula with something in it that is not known here."""


def mathml(latex: str, display: bool = False) -> str:
    """A formula as a <math> element.

    >>> mathml("{x}^2")
    '<math><mrow><msup><mrow><mi>x</mi></mrow><mn>2</mn></msup></mrow></math>'
    """
    reader = _Reader(_TOKEN.findall(latex), latex)
    block = ' display="block"' if display else ""
    return f"<math{block}>{reader.row()}</math>"


class _Reader:
    def __init__(self, tokens: list[str], latex: str) -> None:
        self.tokens, self.latex, self.place = tokens, latex, 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise FormulaError(f"expected {expected or 'more'}, got {token!r} in {self.latex}")
        self.place += 1
        return token

    def row(self, *ends: str) -> str:
        """Everything up to one of `ends`, which is left where it is."""
        parts: list[str] = []
        while self.peek() and self.peek() not in ends:
            if self.peek() in ("^", "_"):
                kind = "msup" if self.take() == "^" else "msub"
                base = parts.pop() if parts else "<mrow></mrow>"
                parts.append(f"<{kind}>{base}{self.atom()}</{kind}>")
            else:
                part = self.atom()
                is_sign = part == "<mo>−</mo>" and (not parts or parts[-1].startswith("<mo>"))  # of a number: no space
                parts.append(formed(part, "prefix") if is_sign else part)
        return f"<mrow>{''.join(parts)}</mrow>"

    def group(self) -> str:
        self.take("{")
        inside = self.row("}")
        self.take("}")
        return inside

    def word(self) -> str:
        """The letters in braces, as they are."""
        self.take("{")
        letters = []
        while self.peek() != "}":
            letters.append(self.take())
        self.take("}")
        return html.escape("".join(letters).replace(r"\_", "_"))

    def atom(self) -> str:
        token = self.peek()
        if token == "{":
            return self.group()
        self.take()
        if token == r"\frac":
            return f"<mfrac>{self.group()}{self.group()}</mfrac>"
        if token == r"\sqrt" and self.peek() == "[":
            self.take()
            degree = self.row("]")
            self.take("]")
            return f"<mroot>{self.group()}{degree}</mroot>"
        if token == r"\sqrt":
            return f"<msqrt>{self.group()}</msqrt>"
        if token == r"\mathit":
            return f"<mi>{self.word()}</mi>"
        if token == r"\operatorname":
            return f'<mi mathvariant="normal">{self.word()}</mi>'
        if token == r"\text":
            return f"<mtext>{html.escape(self.take()[1:-1]).replace(' ', '&nbsp;')}</mtext>"
        if token == r"\left":
            return self.enclosed(self.atom(), r"\right")
        if token == "[":
            return self.enclosed("<mo>[</mo>", "]")
        if token == r"\begin":
            return self.cases()
        if _FUNCTION.fullmatch(token):
            return f'<mi mathvariant="normal">{token[1:]}</mi>'
        if token in _SYMBOLS:
            return _SYMBOLS[token]
        if token.startswith("\\"):
            raise FormulaError(f"{token} is not known in {self.latex}")
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return f"<mo>{'−' if token == '-' else html.escape(token)}</mo>"

    def enclosed(self, opening: str, end: str) -> str:
        """What is between two signs that belong together: they are as high as that, and a bar is no operator."""
        inside = self.row(end)
        if end == r"\right":
            self.take(end)
        return f"<mrow>{formed(opening, 'prefix')}{inside}{formed(self.atom(), 'postfix')}</mrow>"

    def cases(self) -> str:
        if self.word() != "cases":
            raise FormulaError(f"only cases can begin in {self.latex}")
        rows: list[str] = []
        while True:
            cells = [self.row("&", r"\\", r"\end")]
            while self.peek() == "&":
                self.take()
                cells.append(self.row("&", r"\\", r"\end"))
            rows.append("<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in cells) + "</mtr>")
            if self.take() == r"\end":
                self.word()
                return f"<mrow><mo>{{</mo><mtable>{''.join(rows)}</mtable></mrow>"


def formed(sign: str, form: str) -> str:
    """An <mo> that is told which side of something it stands on."""
    return sign.replace("<mo>", f'<mo form="{form}">')
