"""The course in another language: gettext catalogs in ``course_lib/locale/LANGUAGE/``, one per lesson, which translate what the sources say in
English. ``COURSE_LANG`` chooses the language. A text without a translation, or whose English has changed since, stands in English."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError

LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
FOLDER = paths.PACKAGE / "locale"
VARIABLE = "COURSE_LANG"
Translate = Callable[[str], str]

_FENCE = re.compile(r"^(```|~~~|\$\$)")
_LINES_COUNT = re.compile(r"^\s*([-*+] |\d+\. |[|<>#]|    )")  # a block in which the ends of the lines mean something
_BETWEEN_WIDE = re.compile(r"(?<=[\u2e80-\uffef])\n(?=[\u2e80-\uffef])")  # Chinese characters and their punctuation
_FILLED = re.compile(r"\\\{\\\{(\w+)\\\}\\\}")


def choose_language() -> str:
    """Return the key of ``LANGUAGES`` that ``COURSE_LANG`` asks for: "zh", "zh-CN" and "zh_CN.UTF-8" are all "zh_CN".

    Raises: CourseError if the course has no such language.
    """
    wanted = os.environ.get(VARIABLE, "").strip() or "en"
    spoken = re.split(r"[-_.@]", wanted)[0].lower()
    for language in LANGUAGES:
        if language.split("_")[0] == spoken:
            return language
    raise CourseError(
        f"{VARIABLE}={wanted}: the course has {' and '.join(LANGUAGES)}, and no other language. Set one of them, or unset {VARIABLE}."
    )


def translate(text: str, catalog: str, language: str = "") -> str:
    """Return ``text`` in ``language``, or in the chosen one, from a catalog such as "lesson02"; ``text`` itself without a translation."""
    language = language or choose_language()
    return text if language == "en" or not text else read_catalog(language, catalog).get(text, text)


def gettext(text: str) -> str:
    """Return a text of the program's own, such as a button's, in the chosen language. Imported as ``_``, by which its texts are found."""
    return translate(text, "interface")


def mark(text: str) -> str:
    """Return ``text`` as it is. Imported as ``N_``, by which a constant's text is found; ``_(text)`` translates it where it is shown."""
    return text


def translate_markdown(text: str, catalog: str, language: str = "") -> str:
    """Return a Markdown text in ``language``, or in the chosen one, block by block. Numbers may stand in the place of ``{{name}}``."""
    language = language or choose_language()
    return text if language == "en" else "\n\n".join(_translate_block(block, language, catalog) for block in split_blocks(text))


def _translate_block(block: str, language: str, catalog: str) -> str:
    if (found := read_catalog(language, catalog).get(block)) is not None:
        return found
    for pattern, translated in _list_patterns(language, catalog):
        if match := pattern.fullmatch(block):
            return re.sub(r"\{\{(\w+)\}\}", lambda name, values=match: values[name[1]], translated)
    return block


def split_blocks(text: str) -> list[str]:
    """Split Markdown into blocks, which blank lines separate. The lines of a paragraph are joined, so that their width says nothing."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in text.split("\n"):
        if not line.strip() and not fence:
            blocks.append([])
            continue
        blocks[-1].append(line)
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line.rstrip().endswith(fence) else fence
        elif mark and not (mark[1] == "$$" and line.rstrip().endswith("$$") and len(line.rstrip()) > 2):
            fence = mark[1]
    return [_join_lines(lines) for lines in blocks if lines]


def _join_lines(lines: list[str]) -> str:
    keep = any(_LINES_COUNT.match(line) or _FENCE.match(line) or line.endswith(("  ", "\\")) for line in lines)
    return "\n".join(lines) if keep else " ".join(line.strip() for line in lines)


def join_lines(paragraph: str) -> str:
    """Return a paragraph on one line. Between two Chinese characters no space takes the place of the end of a line."""
    return " ".join(_BETWEEN_WIDE.sub("", paragraph).split())


@functools.cache
def read_catalog(language: str, catalog: str) -> dict[str, str]:
    """Return the translations of a catalog, by their English; none if it has no file."""
    file = find_catalog(language, catalog)
    if not file.exists():
        return {}
    import polib  # here, because a browser tab has neither catalogs nor polib

    return {entry.msgid: entry.msgstr for entry in polib.pofile(str(file)) if entry.translated()}


def find_catalog(language: str, catalog: str) -> Path:
    return FOLDER / language / f"{catalog}.po"


@functools.cache
def _list_patterns(language: str, catalog: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the translations of texts with ``{{name}}``, each with a pattern of what a filled text is."""
    patterns = []
    for english, translated in read_catalog(language, catalog).items():
        if "{{" in english:
            seen: set[str] = set()

            def capture(match: re.Match[str], seen: set[str] = seen) -> str:
                again = match[1] in seen
                seen.add(match[1])
                return f"(?P={match[1]})" if again else f"(?P<{match[1]}>.+?)"

            patterns.append((re.compile(_FILLED.sub(capture, re.escape(english))), translated))
    return patterns
