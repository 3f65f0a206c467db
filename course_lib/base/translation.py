"""The course in another language: gettext catalogs in ``course_lib/locale/LANGUAGE/``, one per
lesson, which translate what the sources say in English. ``COURSE_LANG`` chooses the language. A
text without a translation, or whose English has changed since, stands in English."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from course_lib.base.errors import CourseError

LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
# found from this file, because `base.paths` translates its errors here
FOLDER = Path(__file__).resolve().parent.parent / "locale"
VARIABLE = "COURSE_LANG"
KEEP_LINES = "\b\n"  # before a paragraph of help whose lines click must keep
Translate = Callable[[str], str]

_FENCE = re.compile(r"^(```|~~~|\$\$)")
# a block in which the ends of the lines mean something
_LINES_COUNT = re.compile(r"^\s*([-*+] |\d+\. |[|<>#]|    )")
# Chinese characters and their punctuation
_BETWEEN_WIDE = re.compile(r"(?<=[\u2e80-\uffef])[ \n](?=[\u2e80-\uffef])")
# {name} or {name:.2f}, in a text of a program
_FIELD = re.compile(r"\{([A-Za-z]\w*)(?:[:!][^{}]*)?\}")
_MARKDOWN_FIELD = re.compile(r"\{\{(\w+)\}\}")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.?!]) (?=\S)")
# Chinese has no space between sentences
_SPACE_AFTER_WIDE = re.compile(r"(?<=[\u3002\uff01\uff1a\uff1b\uff1f]) ")
# An entry of a catalog: its comments, its English and its translation. Polib, with which authors
# write the catalogs, is not needed here: `course doctor` speaks where packages are missing.
_ENTRY = re.compile(
    r'((?:^#.*\n)*)^msgid (".*"(?:\n".*")*)\nmsgstr (".*"(?:\n".*")*)$', re.MULTILINE
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_OWN_LETTERS = 4  # a text with fewer outside its fields says nothing about what it is


def choose_language() -> str:
    """Return the key of ``LANGUAGES`` that ``COURSE_LANG`` asks for: "zh", "zh-CN" and
    "zh_CN.UTF-8" are all "zh_CN".

    Raises: CourseError if the course has no such language.
    """
    requested = os.environ.get(VARIABLE, "").strip() or "en"
    spoken = re.split(r"[-_.@]", requested)[0].lower()
    for language in LANGUAGES:
        if language.split("_")[0] == spoken:
            return language
    raise CourseError(
        f"{VARIABLE}={requested}: the course has {' and '.join(LANGUAGES)}, and no other language."
        f" Set one of them, or unset {VARIABLE}."
    )


def translate(text: str, catalog: str, language: str = "") -> str:
    """Return ``text`` in ``language``, or in the chosen one, from a catalog such as "lesson02";
    ``text`` itself without a translation."""
    language = language or choose_language()
    return text if language == "en" or not text else read_catalog(language, catalog).get(text, text)


def gettext(text: str) -> str:
    """Return a text of the program's own, such as a button's, in the chosen language. Imported as
    ``_``, by which its texts are found."""
    return translate(text, "interface")


def translate_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return names that a program shows, by their keys, in the chosen language."""
    return {key: gettext(name) for key, name in names.items()}


def mark(text: str) -> str:
    """Return ``text`` as it is. Imported as ``N_``, by which a constant's text is found;
    ``_(text)`` translates it where it is shown."""
    return text


def translate_markdown(text: str, catalog: str, language: str = "") -> str:
    """Return a Markdown text in ``language``, or in the chosen one, block by block. Numbers may
    stand in the place of ``{{name}}``."""
    language = language or choose_language()
    return (
        text
        if language == "en"
        else "\n\n".join(_translate_block(block, language, catalog) for block in split_blocks(text))
    )


def _translate_block(block: str, language: str, catalog: str) -> str:
    if (translated_block := read_catalog(language, catalog).get(block)) is not None:
        return translated_block
    for pattern, translated, _ in _list_patterns(language, catalog, _MARKDOWN_FIELD):
        if match := pattern.fullmatch(block):
            return _MARKDOWN_FIELD.sub(lambda field, values=match: values[field[1]], translated)
    return block


def translate_filled(text: str, catalog: str) -> str:
    """Return a text that was saved in English, its ``{fields}`` filled, in the chosen language.
    Values that the catalog has are translated, too.

    Of several texts of the catalog that fit, the one with the most letters of its own counts. Where
    the catalog has each sentence by itself, and these have more letters of their own than a text
    that fits the whole, the sentences count.
    """
    if choose_language() == "en":
        return text
    sentences = [_find_filled(sentence, catalog) for sentence in _BETWEEN_SENTENCES.split(text)]
    own_letters, whole = _find_filled(text, catalog) or (0, text)
    if None not in sentences and sum(part[0] for part in sentences if part) > own_letters:
        return join_sentences(*(part[1] for part in sentences if part))
    return whole


def _find_filled(text: str, catalog: str) -> tuple[int, str] | None:
    """Return the letters, outside of its fields, of the text of the catalog that fits ``text``, and
    its translation, filled."""
    language = choose_language()
    if (translated_text := read_catalog(language, catalog).get(text)) is not None:
        return len(re.findall("[A-Za-z]", text)), translated_text
    for pattern, translated, own_letters in _list_patterns(language, catalog, _FIELD):
        if own_letters >= _OWN_LETTERS and (match := pattern.fullmatch(text)):
            return own_letters, _FIELD.sub(
                lambda field, values=match: translate_filled(values[field[1]], catalog), translated
            )
    return None


def join_sentences(*sentences: str) -> str:
    """Join the sentences, or a label that ends with a colon and its text. Empty ones are left
    out."""
    return _SPACE_AFTER_WIDE.sub("", " ".join(filter(None, sentences)))


def split_blocks(text: str) -> list[str]:
    """Split Markdown into blocks, which blank lines separate. The lines of a paragraph are joined,
    so that their width says nothing."""
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
        elif mark and not (
            mark[1] == "$$" and line.rstrip().endswith("$$") and len(line.rstrip()) > 2
        ):
            fence = mark[1]
    return [_join_lines(lines) for lines in blocks if lines]


def _join_lines(lines: list[str]) -> str:
    keep = any(
        _LINES_COUNT.match(line) or _FENCE.match(line) or line.endswith(("  ", "\\"))
        for line in lines
    )
    return "\n".join(lines) if keep else " ".join(line.strip() for line in lines)


def join_lines(paragraph: str) -> str:
    """Return a paragraph on one line. Between two Chinese characters stands neither a space nor the
    end of a line."""
    return " ".join(_BETWEEN_WIDE.sub("", paragraph).split())


def split_help(text: str | None) -> list[str]:
    """Split a text of ``--help`` into paragraphs. The lines of examples stay; those of other
    paragraphs are joined."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return [
        part.removeprefix(KEEP_LINES) if part.startswith(KEEP_LINES) else " ".join(part.split())
        for part in paragraphs
        if part
    ]


@functools.cache
def read_catalog(language: str, catalog: str) -> dict[str, str]:
    """Return the translations of a catalog, by their English; none if it has no file."""
    file = find_catalog(language, catalog)
    if not file.exists():  # as in a browser tab
        return {}
    entries = _ENTRY.findall(file.read_text(encoding="utf-8"))
    return {
        english: translated
        for comments, msgid, msgstr in entries
        if "#, fuzzy" not in comments
        and (english := _unquote(msgid))
        and (translated := _unquote(msgstr))
    }


def _unquote(lines: str) -> str:
    """Return the text of an entry from its quoted lines."""
    text = "".join(line[1:-1] for line in lines.split("\n"))
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), text)


def find_catalog(language: str, catalog: str) -> Path:
    return FOLDER / language / f"{catalog}.po"


@functools.cache
def _list_patterns(
    language: str, catalog: str, field: re.Pattern[str]
) -> list[tuple[re.Pattern[str], str, int]]:
    """Return a pattern of what each text with fields is when they are filled, its translation, and
    its letters outside the fields: most first."""
    patterns = []
    for english, translated in read_catalog(language, catalog).items():
        texts, names = field.split(english)[::2], field.split(english)[1::2]
        if names:
            groups = (
                f"(?P={name})" if name in names[:at] else f"(?P<{name}>.+?)"
                for at, name in enumerate(names)
            )
            pattern = "".join(
                re.escape(text) + group for text, group in zip(texts, [*groups, ""], strict=True)
            )
            patterns.append(
                (
                    re.compile(pattern, re.DOTALL),
                    translated,
                    len(re.findall("[A-Za-z]", "".join(texts))),
                )
            )
    return sorted(patterns, key=lambda pattern: -pattern[2])
