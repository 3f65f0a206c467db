"""Translate what an exercise or the cell of a step says to its reader: docstrings and comments.
Code stays as it is."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize

from rich.cells import cell_len

from course_lib.base.translation import Translate

_WIDTH = 100  # columns; a Chinese character takes two


def translate_comments(code: str, translate: Translate) -> str:
    """Return ``code`` with its docstrings and its comments translated. Lines of comments below one
    another are one text."""
    lines = code.splitlines()
    for first_row, last_row, column, text in reversed(_find_comments(code)):
        if (translated := translate(text)) != text:
            before = lines[first_row][:column]
            lines[first_row : last_row + 1] = (
                _wrap(translated, f"{before}# ")
                if not before.strip()
                else [f"{before}# {translated}"]
            )
    code = "\n".join(lines) + "\n" * code.endswith("\n")
    return _translate_docstrings(code, translate)


def _find_comments(code: str) -> list[tuple[int, int, int, str]]:
    """Return first line, last line, column and text of each comment; lines that hold nothing else,
    below one another, are one."""
    comments: list[tuple[int, int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, column = token.start[0] - 1, token.start[1]
        text = token.string.lstrip("#").strip()
        alone = not token.line[:column].strip()
        begins = text.startswith(("YOUR CODE", "REPAIR"))
        if (
            comments
            and alone
            and not begins
            and comments[-1][1] == row - 1
            and comments[-1][2] == column
            and not code.splitlines()[row - 1][:column].strip()
        ):
            first_row, _, _, before = comments[-1]
            comments[-1] = (first_row, row, column, f"{before} {text}")
        else:
            comments.append((row, row, column, text))
    return comments


def _translate_docstrings(code: str, translate: Translate) -> str:
    lines, module = code.split("\n"), ast.parse(code)
    documented = [
        node
        for node in ast.walk(module)
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node) is not None
    ]
    for text in sorted(
        (node.body[0] for node in documented), key=lambda text: text.lineno, reverse=True
    ):
        quoted, indent = ast.get_source_segment(code, text), " " * text.col_offset
        assert quoted is not None and text.end_lineno is not None
        if not quoted.startswith('"""'):
            continue
        written = "\n\n".join(
            _translate_paragraph(paragraph, indent, translate)
            for paragraph in quoted[3:-3].split("\n\n")
        )
        lines[text.lineno - 1 : text.end_lineno] = (
            f'{indent}"""{written.removeprefix(indent)}"""'.split("\n")
        )
    return "\n".join(lines)


def _translate_paragraph(paragraph: str, indent: str, translate: Translate) -> str:
    """Translate the lines of formulas, which stand further right, as one text with its lines, and
    other lines as one text without."""
    body = paragraph.rstrip()
    formulas = body.startswith(f"{indent}    ")
    text = textwrap.dedent(body) if formulas else " ".join(body.split())
    if (translated := translate(text)) == text:
        return paragraph
    indented = (
        textwrap.indent(translated, body[: body.index(text.split("\n", 1)[0])])
        if formulas
        else "\n".join(_wrap(translated, indent))
    )
    return indented + paragraph[len(body) :]


def _wrap(text: str, before: str) -> list[str]:
    return [before + line for line in wrap(text, _WIDTH - cell_len(before))]


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns. Chinese has no spaces, so a line may
    end behind any of its characters."""
    if cell_len(text) == len(text):
        return textwrap.wrap(text, width, break_on_hyphens=False)
    lines, line = [], ""
    for word in _split_words(text):
        if (
            line
            and cell_len(line + word.rstrip()) > width
            and not word.startswith(tuple("，。；：、？！）」”"))
        ):
            lines.append(line.rstrip())
            line = word.lstrip()
        else:
            line += word
    return [line for line in [*lines, line.rstrip()] if line]


def _split_words(text: str) -> list[str]:
    """Split before each wide character and behind each space: where a line may end."""
    words, word = [], ""
    for character in text:
        if cell_len(character) > 1 or word.endswith(" ") or (word and cell_len(word[-1]) > 1):
            words.append(word)
            word = ""
        word += character
    return [w for w in [*words, word] if w]
