"""A kernel's lines as a picture shows them: without comments, docstring and empty lines, so that
they fit beside the picture."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable, Mapping


def list_code(source: Mapping[int, str], lines: Iterable[int]) -> list[tuple[int, int, str]]:
    """Return (number, indentation in spaces, text) for each line of ``source`` from the first of
    ``lines`` to the last.

    Args:
        source: the kernel's text by line number; it holds whole statements.
    """
    lines = set(lines)
    first_number = min(source, default=0)
    text = "\n".join(
        source.get(number, "") for number in range(first_number, max(source, default=0) + 1)
    )
    cuts: dict[int, int] = {}  # line number -> column at which its comment begins
    left_out: set[int] = set()  # lines of docstrings
    begins = True  # does the next token begin a statement?
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            cuts[token.start[0] + first_number - 1] = token.start[1]
        elif token.type == tokenize.STRING and begins:
            left_out |= set(range(token.start[0] + first_number - 1, token.end[0] + first_number))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code = [
        (number, source[number][: cuts.get(number)].rstrip())
        for number in range(min(lines, default=0), max(lines, default=-1) + 1)
        if number in source and number not in left_out
    ]
    code = [(number, line) for number, line in code if line]
    margin = min((len(line) - len(line.lstrip()) for _, line in code), default=0)
    return [
        (number, len(line) - len(line.lstrip()) - margin, line.strip()) for number, line in code
    ]
