"""The page's files without what is for people who read them; setup.py, too, runs this for the wheel."""

from __future__ import annotations


def without_remarks(text: str) -> str:
    """The same program without indentation and without lines that are only a comment: a quarter shorter.

    >>> without_remarks("// why\\nif (a) {\\n  b();\\n}\\n")
    'if (a) {\\nb();\\n}\\n'
    """
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**"))) + "\n"
