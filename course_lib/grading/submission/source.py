"""Read the text of a submission, parse it, and refuse a text that is no Python or imports a module
that does not exist."""

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
from course_lib.base.translation import gettext as _
from course_lib.grading.submission.places import Located, Span, find_span, split_lines
from course_lib.grading.verdict import Oddity

_MAX_BYTES = 1_000_000
_LONGEST_QUOTE = 120  # characters; the verdict shows the whole line separately
_LONGEST = 1000  # characters of a message about a file
# a recursive walk takes about four frames per level, and a notebook has many frames already
_MAX_DEPTH = 100

_UNFINISHED = re.compile(r"(?:[-+*/%@&|^<>=!:]=|[-+*/%@&|^<>=]|\b(?:and|or|not|in|is))$")
_NOTEBOOK = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cells|metadata|nbformat)"')
# packages that the course needs: if one is missing, the installation is at fault and not the
# learner's import
_NEEDED = frozenset({"triton", "torch", "numpy"})


class Unreadable(Exception):
    """The file cannot be graded. ``cause`` is a stable identifier, ``str()`` the sentences for its
    author.

    ``what`` is the message without file and line, for a verdict that shows ``span`` apart; None if
    no line is at fault.
    """

    def __init__(self, cause: str, message: str, what: str = "", span: Span | None = None):
        super().__init__(shorten(message, _LONGEST))
        self.cause, self.what, self.span = cause, shorten(what or message, _LONGEST), span


def make_refusal(cause: str, file: str, node: Located, what: str) -> Unreadable:
    """Make the Unreadable that says what is wrong with one node of ``file``."""
    return Unreadable(
        cause,
        _("{file}, line {line}: {what}").format(file=file, line=node.lineno, what=what),
        what,
        find_span(node),
    )


@dataclass(frozen=True)
class Kernels:
    """The graded code of a learner's file.

    ``source`` has the kernels, or functions, and the code that they need, at the line numbers of
    the file. ``names`` has their names.

    ``rules`` is plain data, for the child: "kind" and "forbidden" as of the exercise, "file" for
    messages, and "given", imports that the text does not contain. Without rules, anything runs.
    ``oddities`` are the odd lines of functions. ``rest`` is the whole file if it runs code of its
    own as it is imported, from line ``rest_line`` on; else "".
    """

    source: str
    names: tuple[str, ...]
    rules: dict[str, Any] | None = None
    oddities: tuple[Oddity, ...] = ()
    rest: str = ""
    rest_line: int = 0


def read_text(path: Path, if_missing: str | None = None) -> str:
    """Return the file's text. ``if_missing`` says what to do about a file that is not there; by
    default, to reset it.

    A file that is itself a link is never read, neither the learner's own nor one named with
    ``--file``: a submission could link to a file that its author must not read, and nothing tells
    such a link from an innocent one. A link among the folders above the file is followed.

    Raises: Unreadable if there is no such file, it is no plain file, too large, or not UTF-8 text.
    """
    name = make_visible_line(path.name)
    if_missing = _("`course reset` writes it anew.") if if_missing is None else if_missing
    try:
        data = read_plain_file(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        folder = make_visible_line(str(path.parent.resolve()))
        missing = _("there is no file {name} in {folder}. {if_missing}").format(
            name=name, folder=folder, if_missing=if_missing
        )
        raise Unreadable("no_file", missing.rstrip()) from None
    except NoPlainFile as other:
        advice = _("a file of Python code belongs there.")
        if path.is_absolute() and path.parts[1] in ("dev", "proc"):
            advice = _(
                "a check reads a file in a folder. Save what comes through it to a file, and name"
                " that file."
            )
        elif path.is_symlink():
            advice = _(
                "it cannot be read through one. Name the file itself, or put a copy of it in place"
                " of the link. {if_missing}"
            )
            advice = advice.format(if_missing=if_missing)
        words = _("{name} {is_a}; {wanted}")
        name = name if path.parent.name != "dev" else make_visible_line(str(path))
        # The backquotes prevent a capital letter for a name at the beginning of a sentence.
        message, what = (
            words.format(name=shown, is_a=other.strerror, wanted=advice)
            for shown in (name, f"`{name}`")
        )
        raise Unreadable("no_file", message.rstrip(), what.rstrip()) from None
    except OSError as error:
        words = _("{name} cannot be read: {error}. Look at its permissions.").format(
            name=name, error=error.strerror
        )
        raise Unreadable("no_file", words) from None
    if len(data) > _MAX_BYTES:
        words = _(
            "{name} is larger than 1 MB. A kernel file holds a page of code; is this the right"
            " file?"
        )
        raise Unreadable("too_large", words.format(name=name))
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        words = _(
            "{name} is saved as UTF-16, and Python reads UTF-8. Save it with the encoding UTF-8."
        )
        raise Unreadable("not_utf8", words.format(name=name))
    if b"\0" in data:
        words = _(
            "{name} holds a NUL byte, so it is no text. Save it as UTF-8, or `course reset` it."
        )
        raise Unreadable("not_text", words.format(name=name))
    if _NOTEBOOK.match(data):
        words = _(
            "{name} is a notebook, and no Python code. Your code belongs into the exercise's .py"
            " file in exercises/. {if_missing}"
        )
        raise Unreadable("not_text", words.format(name=name, if_missing=if_missing).rstrip())
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        words = _(
            "{name} is not UTF-8: byte {byte} in line {line}. Save it with the encoding UTF-8."
        )
        raise Unreadable(
            "not_utf8", words.format(name=name, byte=f"{data[error.start]:#04x}", line=line)
        ) from None


def parse(text: str, name: str) -> ast.Module:
    try:
        tree = ast.parse(text, filename=name)
        level: list[ast.AST] = [tree]
        for _depth in range(_MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise RecursionError
        _check_numbers(tree, name)
        return tree
    except SyntaxError as error:
        line = shorten((error.text or "").strip(), _LONGEST_QUOTE)
        shown = _(": `{code}`").format(code=line) if line else ""
        message = _("{file}, line {line} is not valid Python ({error}){code}.")
        message = message.format(file=name, line=error.lineno, error=error.msg, code=shown)
        if open_end := _UNFINISHED.search((error.text or "").partition("#")[0].rstrip()):
            what = _(
                "this line is not finished: nothing stands after `{code}`. Is a part still missing?"
            ).format(code=open_end[0])
            message = _("{file}, line {line}: {what}").format(
                file=name, line=error.lineno, what=what
            )
            raise Unreadable(
                "syntax_error", message, what, _find_span_of_error(error, text)
            ) from None
        what = _("this is not valid Python: {error}").format(error=error.msg)
        raise Unreadable("syntax_error", message, what, _find_span_of_error(error, text)) from None
    except (RecursionError, MemoryError, ValueError) as error:
        words = _("{name} cannot be parsed ({error}): it is nested too deeply.").format(
            name=name, error=type(error).__name__
        )
        raise Unreadable("syntax_error", words) from None


def _check_numbers(tree: ast.Module, name: str) -> None:
    """Refuse a whole number with more digits than Python converts to text. Written in decimal, it
    would be a syntax error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            try:
                repr(node.value)
            except ValueError:
                words = _("a number of more than {count} digits, which Python does not write out.")
                raise make_refusal(
                    "syntax_error", name, node, words.format(count=sys.get_int_max_str_digits())
                ) from None


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


def check_imports(statements: list[ast.stmt], name: str, needed: str) -> None:
    """Refuse an import of what does not exist; ``needed`` says what the exercise needs instead.

    Raises: Unreadable; EnvironmentFault if it is a package that the course itself needs.
    """
    for node in ast.walk(ast.Module(statements, [])):
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
                words = _("the import of {module} fails, there is no such module here. {needed}")
                raise make_refusal(
                    "import_fails", name, node, words.format(module=repr(module), needed=needed)
                )


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # a module that is loaded but has no file, such as __main__
        return True
