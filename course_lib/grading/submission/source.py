"""Read the text of a submission, parse it, and refuse a text that is no Python or imports a module that does not exist."""

from __future__ import annotations

import ast
import codecs
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.base.files import NoPlainFile, read_plain_file
from course_lib.base.installation import missing_package
from course_lib.base.text import make_visible_line, shorten
from course_lib.grading.submission.places import Located, Span, find_span, split_lines
from course_lib.grading.verdict import Oddity

_MAX_BYTES = 1_000_000
_LONGEST_QUOTE = 120  # characters; the verdict shows the whole line separately
_LONGEST = 1000  # characters of a message about a file
_MAX_DEPTH = 100  # a recursive walk takes about four frames per level, and a notebook has many frames already

_UNFINISHED = re.compile(r"(?:[-+*/%@&|^<>=!:]=|[-+*/%@&|^<>=]|\b(?:and|or|not|in|is))$")
_NOTEBOOK = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cells|metadata|nbformat)"')
# packages that the course needs: if one is missing, the installation is at fault and not the learner's import
_NEEDED = frozenset({"triton", "torch", "numpy"})


class Unreadable(Exception):
    """The file cannot be graded. ``cause`` is a stable identifier, ``str()`` the sentences for its author.

    ``what`` is the message without file and line, for a verdict that shows ``span`` apart; None if no line is at fault.
    """

    def __init__(self, cause: str, message: str, what: str = "", span: Span | None = None):
        super().__init__(shorten(message, _LONGEST))
        self.cause, self.what, self.span = cause, shorten(what or message, _LONGEST), span


def make_refusal(cause: str, file: str, node: Located, what: str) -> Unreadable:
    """Make the Unreadable that says what is wrong with one node of ``file``."""
    return Unreadable(cause, f"{file}, line {node.lineno}: {what}", what, find_span(node))


@dataclass(frozen=True)
class Kernels:
    """The graded code of a learner's file.

    ``source`` has the kernels, or functions, and the code that they need, at the line numbers of the file. ``names`` has their names.

    ``rules`` is plain data, for the child: "kind" and "forbidden" as of the exercise, "file" for messages, and "given", imports that
    the text does not contain. Without rules, anything runs. ``oddities`` are the odd lines of functions. ``rest`` is the whole file if it
    runs code of its own as it is imported, from line ``rest_line`` on; else "".
    """

    source: str
    names: tuple[str, ...]
    rules: dict[str, Any] | None = None
    oddities: tuple[Oddity, ...] = ()
    rest: str = ""
    rest_line: int = 0


def read_text(path: Path, if_missing: str = "`course reset` writes it anew.") -> str:
    """Return the file's text. ``if_missing`` says what to do about a file that is not there.

    A file that is itself a link is never read, neither the learner's own nor one named with ``--file``: a submission
    could link to a file that its author must not read, and nothing tells such a link from an innocent one. A link among the folders
    above the file is followed.

    Raises: Unreadable if there is no such file, it is no plain file, too large, or not UTF-8 text.
    """
    name = make_visible_line(path.name)
    try:
        data = read_plain_file(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        folder = make_visible_line(str(path.parent.resolve()))
        raise Unreadable("no_file", f"there is no file {name} in {folder}. {if_missing}".rstrip()) from None
    except NoPlainFile as other:
        wanted = "a file of Python code belongs there."
        if path.is_symlink():
            wanted = f"it cannot be read through one. Name the file itself, or put a copy of it in place of the link. {if_missing}"
        # The backquotes prevent a capital letter for a name at the beginning of a sentence.
        raise Unreadable("no_file", f"{name} {other.strerror}; {wanted}".rstrip(), f"`{name}` {other.strerror}; {wanted}") from None
    except OSError as error:
        raise Unreadable("no_file", f"{name} cannot be read: {error.strerror}. Look at its permissions.") from None
    if len(data) > _MAX_BYTES:
        raise Unreadable("too_large", f"{name} is larger than 1 MB. A kernel file holds a page of code; is this the right file?")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("not_utf8", f"{name} is saved as UTF-16, and Python reads UTF-8. Save it with the encoding UTF-8.")
    if b"\0" in data:
        raise Unreadable("not_text", f"{name} holds a NUL byte, so it is no text. Save it as UTF-8, or `course reset` it.")
    if _NOTEBOOK.match(data):
        raise Unreadable(
            "not_text",
            f"{name} is a notebook, and no Python code. Your code belongs into the exercise's .py file in exercises/. {if_missing}".rstrip(),
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            "not_utf8", f"{name} is not UTF-8: byte {data[error.start]:#04x} in line {line}. Save it with the encoding UTF-8."
        ) from None


def parse(text: str, name: str) -> ast.Module:
    try:
        tree = ast.parse(text, filename=name)
        level: list[ast.AST] = [tree]
        for _ in range(_MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise RecursionError
        _check_numbers(tree, name)
        return tree
    except SyntaxError as error:
        line = shorten((error.text or "").strip(), _LONGEST_QUOTE)
        shown = f": `{line}`" if line else ""
        message = f"{name}, line {error.lineno} is not valid Python ({error.msg}){shown}."
        if open_end := _UNFINISHED.search((error.text or "").partition("#")[0].rstrip()):
            what = f"this line is not finished: nothing stands after `{open_end[0]}`. Is a part still missing?"
            raise Unreadable("syntax_error", f"{name}, line {error.lineno}: {what}", what, _find_span_of_error(error, text)) from None
        raise Unreadable("syntax_error", message, f"this is not valid Python: {error.msg}", _find_span_of_error(error, text)) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise Unreadable("syntax_error", f"{name} cannot be parsed ({type(error).__name__}): it is nested too deeply.") from None


def _check_numbers(tree: ast.Module, name: str) -> None:
    """Refuse a whole number with more digits than Python converts to text. Written in decimal, it would be a syntax error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            try:
                repr(node.value)
            except ValueError:
                digits = f"more than {sys.get_int_max_str_digits()} digits"
                raise make_refusal("syntax_error", name, node, f"a number of {digits}, which Python does not write out.") from None


def _find_span_of_error(error: SyntaxError, text: str) -> Span | None:
    lines = split_lines(text)
    if not error.lineno or error.lineno > len(lines):
        return None
    if not error.offset or error.offset < 1:
        return Span(error.lineno)
    source = lines[error.lineno - 1]
    start, end = error.offset - 1, (error.end_offset or 0) - 1  # characters, not bytes
    end = end if error.end_lineno == error.lineno and end > start else start + 1
    return Span(error.lineno, len(source[:start].encode()), len(source[:end].encode()))


def check_imports(tree: ast.Module, name: str, needed: str) -> None:
    """Refuse an import of what does not exist; ``needed`` says what the exercise needs instead.

    Raises: Unreadable; EnvironmentFault if it is a package that the course itself needs.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "."]
        else:
            continue
        for module in modules:
            top = module.split(".")[0]
            if top in _NEEDED and not _exists(top):
                raise missing_package(top)
            if not top or not _exists(top):
                raise make_refusal("import_fails", name, node, f"the import of {module!r} fails, there is no such module here. {needed}")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # a module that is loaded but has no file, such as __main__
        return True
