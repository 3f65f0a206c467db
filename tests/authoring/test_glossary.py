"""docs/glossary.md names each thing in both languages, and the catalogs use its names."""

from __future__ import annotations

import re

import polib
import pytest

from course_lib.base import paths
from course_lib.base.translation import FOLDER

_ROW = re.compile(
    r"^\| (?P<english>[^|]+) \| [^|]+ \| (?P<chinese>[^|]*[\u4e00-\u9fff][^|]*) \|$", re.MULTILINE
)
_NOT_PROSE = re.compile(
    r"```.*?```|\$\$.*?\$\$|`[^`]*`|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|<[^>]*>|\{\w+\}", re.DOTALL
)
_OTHER_SENSE = re.compile(
    r"\b(?:forwards|backwards|by floor|in a row|register it|A grid of|mean squared"
    r"|operations? on shared memory|the shared memory below)\b"
)
# English words that also mean something else: to signify, to keep a measurement, a competition
SEVERAL_MEANINGS = {"mean", "store", "race", "LayerNorm", "RMSNorm"}  # both languages have two


def read_terms() -> dict[str, str]:
    terms = {}
    for row in _ROW.finditer((paths.ROOT / "docs/glossary.md").read_text(encoding="utf-8")):
        if row["english"] != "word":
            terms |= dict(zip(row["english"].split(", "), row["chinese"].split("、"), strict=True))
    return terms


TERMS = read_terms()
ENTRIES = [
    (file.stem, entry)
    for file in sorted((FOLDER / "zh_CN").glob("*.po"))
    if file.stem != "glossary"
    for entry in polib.pofile(str(file)).translated_entries()
]


def is_missing(english: str, chinese: str, term: str, name: str) -> bool:
    """Whether a text has the term and its translation has neither the term's Chinese name nor, as
    in code, the English word."""
    found = re.search(
        rf"(?<![\w.-]){re.escape(term.removesuffix('e'))}(?:e|e?s|ed|ing)?(?![\w-])",
        _OTHER_SENSE.sub("", _NOT_PROSE.sub("", english)),
    )
    return bool(found) and name not in chinese and found[0] not in chinese


@pytest.mark.parametrize("term", sorted(TERMS.keys() - SEVERAL_MEANINGS))
def test_a_term_has_one_chinese_name(term):
    missing = [
        (name, entry.msgid, entry.msgstr)
        for name, entry in ENTRIES
        if is_missing(entry.msgid, entry.msgstr, term, TERMS[term])
    ]
    assert not missing, f"{term} is {TERMS[term]}: {missing}"


def test_another_name_is_found_and_the_word_of_code_is_not():
    assert is_missing(
        "A lane past the end adds 0.", "超出行尾的 lane 加 0。", "lane past the end", "越界 lane"
    )
    assert not is_missing(
        "A lane past the end adds 0.", "越界 lane 加 0。", "lane past the end", "越界 lane"
    )
    assert not is_missing(
        "YOUR CODE: mask: which of them exist", "YOUR CODE：mask：其中哪些存在", "mask", "掩码"
    )
    assert not is_missing("The masked-out part of `mask`", "`mask` 的那一部分", "mask", "掩码")


@pytest.mark.parametrize(
    ("former", "english"), [("标准化", "standard"), ("通道", "channel")]
)  # 归一化 and lane are the names of the field
def test_a_former_name_is_gone(former, english):
    assert not [
        (name, entry.msgstr)
        for name, entry in ENTRIES
        if former in entry.msgstr and english not in entry.msgid
    ]


def test_words_of_both_kinds_are_there():
    assert (
        TERMS["thread"] == "线程" and TERMS["lane past the end"] == "越界 lane" and len(TERMS) >= 45
    )
    assert TERMS.keys() >= SEVERAL_MEANINGS
