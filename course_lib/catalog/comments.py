"""Translate what an exercise or the cell of a step says to its reader: the docstring of the file, and comments. Code stays as it is."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize

from rich.cells import cell_len

from course_lib.base.translation import Translate

_WIDTH = 100  # columns; a Chinese character takes two


def translate_comments(code: str, translate: Translate) -> str:
    """Return ``code`` with its first docstring and its comments translated. Lines of comments below one another are one text."""
    lines = code.splitlines()
    for first, last, column, text in reversed(_find_comments(code)):
        if (translated := translate(text)) != text:
            before = lines[first][:column]
            lines[first : last + 1] = _wrap(translated, before, "# ") if not before.strip() else [f"{before}# {translated}"]
    code = "\n".join(lines) + "\n" * code.endswith("\n")
    return _translate_docstring(code, translate)


def _find_comments(code: str) -> list[tuple[int, int, int, str]]:
    """Return first line, last line, column and text of each comment; lines that hold nothing else, below one another, are one."""
    found: list[tuple[int, int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, column = token.start[0] - 1, token.start[1]
        text = token.string.lstrip("#").strip()
        alone = not token.line[:column].strip()
        begins = text.startswith(("YOUR CODE", "REPAIR"))
        if (
            found
            and alone
            and not begins
            and found[-1][1] == row - 1
            and found[-1][2] == column
            and not code.splitlines()[row - 1][:column].strip()
        ):
            first, _, _, before = found[-1]
            found[-1] = (first, row, column, f"{before} {text}")
        else:
            found.append((row, row, column, text))
    return found


def _translate_docstring(code: str, translate: Translate) -> str:
    module = ast.parse(code)
    docstring = ast.get_docstring(module, clean=False)
    if docstring is None:
        return code
    paragraphs = []
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith("    "):  # formulas
            paragraphs.append(paragraph)
            continue
        text = " ".join(paragraph.split())
        translated = translate(text)
        paragraphs.append(paragraph if translated == text else "\n".join(_wrap(translated, "", "")) + "\n" * paragraph.endswith("\n"))
    end = module.body[0].end_lineno
    assert end is not None
    below = code.splitlines(keepends=True)[end:]
    return '"""' + "\n\n".join(paragraphs) + '"""\n' + "".join(below)


def _wrap(text: str, indent: str, mark: str) -> list[str]:
    """Break a text into lines. Chinese has no spaces, so a line may end behind any of its characters."""
    room = _WIDTH - cell_len(indent + mark)
    if cell_len(text) == len(text):
        return textwrap.wrap(text, room, initial_indent=indent + mark, subsequent_indent=indent + mark, break_on_hyphens=False)
    lines, line = [], ""
    for word in _split_words(text):
        if line and cell_len(line + word.rstrip()) > room and not word.startswith(tuple("，。；：、？！）」”")):
            lines.append(line.rstrip())
            line = word.lstrip()
        else:
            line += word
    return [f"{indent}{mark}{line}" for line in [*lines, line.rstrip()] if line]


def _split_words(text: str) -> list[str]:
    """Split before each wide character and behind each space: where a line may end."""
    words, word = [], ""
    for character in text:
        if cell_len(character) > 1 or word.endswith(" ") or (word and cell_len(word[-1]) > 1):
            words.append(word)
            word = ""
        word += character
    return [w for w in [*words, word] if w]
