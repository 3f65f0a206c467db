"""Texts in another language: which one is chosen, how Markdown is cut into blocks, and what stands
where there is no translation."""

from __future__ import annotations

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base import translation
from course_lib.base.errors import CourseError
from course_lib.base.translation import (
    choose_language,
    join_lines,
    join_sentences,
    split_blocks,
    translate,
    translate_filled,
    translate_markdown,
)
from course_lib.base.words import AND, list_words


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """Return a function that writes the catalog ``some``; the course then speaks Chinese."""
    monkeypatch.setattr(translation, "FOLDER", tmp_path)
    monkeypatch.setenv("COURSE_LANG", "zh")

    def write(*entries: tuple[str, str], flags: tuple[str, ...] = ()) -> None:
        file = polib.POFile()
        file.extend(
            polib.POEntry(msgid=english, msgstr=chinese, flags=list(flags))
            for english, chinese in entries
        )
        (tmp_path / "zh_CN").mkdir(exist_ok=True)
        file.save(str(tmp_path / "zh_CN" / "some.po"))

    translation.read_catalog.cache_clear()
    translation._list_patterns.cache_clear()
    yield write
    translation.read_catalog.cache_clear()
    translation._list_patterns.cache_clear()


@pytest.mark.parametrize(
    ("said", "language"), [("", "en"), ("en", "en"), ("en_GB.UTF-8", "en"), ("zh", "zh_CN"),
        ("zh-CN", "zh_CN"), ("zh_CN.UTF-8", "zh_CN"), ("ZH", "zh_CN")]
)  # fmt: skip
def test_the_language_is_chosen_by_its_first_letters(monkeypatch, said, language):
    monkeypatch.setenv("COURSE_LANG", said)
    assert choose_language() == language


def test_a_language_that_the_course_lacks_is_refused_with_those_that_it_has(monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "fr")
    with pytest.raises(CourseError, match=r"COURSE_LANG=fr: the course has en and zh_CN"):
        choose_language()


def test_a_text_without_a_translation_stands_in_english(catalog):
    catalog(("a row", "一行"), ("a column", ""))
    assert [translate(text, "some") for text in ("a row", "a column", "a block", "")] == [
        "一行",
        "a column",
        "a block",
        "",
    ]
    assert translate("a row", "another") == "a row"


def test_a_fuzzy_translation_is_not_shown(catalog):
    catalog(("a row", "一行"), flags=("fuzzy",))
    assert translate("a row", "some") == "a row"


def test_a_paragraph_is_found_however_its_lines_are_broken(catalog):
    catalog(("One two three.", "一二三。"))
    assert (
        translate_markdown("One\ntwo three.\n\nOne two\nthree.", "some") == "一二三。\n\n一二三。"
    )


def test_a_value_is_put_into_the_translation_in_another_order(catalog):
    catalog(("It takes {{time}} us of {{whole}}; {{time}} (us).", "{{whole}} 里占 {{time}}。"))
    assert translate_markdown("It takes 3.5 us of 12; 3.5 (us).", "some") == "12 里占 3.5。"
    assert (
        translate_markdown("It takes 3.5 us of 12; 4 (us).", "some")
        == "It takes 3.5 us of 12; 4 (us)."
    )


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("# Title\n\nWords\nand words.", ["# Title", "Words and words."]),
        ("```python\na = 1\n\nb = 2\n```\n\nWords.", ["```python\na = 1\n\nb = 2\n```", "Words."]),
        ("$$\na\n\nb\n$$\n\nWords.", ["$$\na\n\nb\n$$", "Words."]),
        ("$$a = b$$\n\nWords.", ["$$a = b$$", "Words."]),
        ("- one\n  more\n- two", ["- one\n  more\n- two"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("> one\n> two", ["> one\n> two"]),
        ("**Bold** words\nand *more*.", ["**Bold** words and *more*."]),
    ],
)
def test_markdown_is_cut_at_blank_lines_outside_of_code_and_formulas(text, blocks):
    assert split_blocks(text) == blocks


@given(st.text(st.sampled_from("ab `$#>-|1.\n"), max_size=60))
def test_no_letter_of_a_text_is_lost_when_it_is_cut(text):
    assert "".join("\n\n".join(split_blocks(text)).split()) == "".join(text.split())


def test_the_end_of_a_line_is_a_space_but_not_between_chinese_characters():
    assert join_lines("the end\nof a line") == "the end of a line"
    assert join_lines("通道，\n所以 x\n等于 1。\n然后") == "通道，所以 x 等于 1。然后"


@pytest.mark.parametrize(
    ("language", "listed", "two"),
    [("en", "a, b, c", "a, b and c"), ("zh", "a\u3001b\u3001c", "a\u3001b \u548c c")],
)
def test_a_list_is_joined_in_the_chosen_language(monkeypatch, language, listed, two):
    monkeypatch.setenv("COURSE_LANG", language)
    assert (list_words("abc"), list_words("abc", AND), list_words("a", AND), list_words([])) == (
        listed,
        two,
        "a",
        "",
    )


def test_no_space_stands_behind_a_chinese_sentence():
    assert join_sentences("One.", "", "Two.") == "One. Two."
    assert (
        join_sentences("\u4e00\u3002", "\u4e8c\u3002 \u4e09\uff1a", "4")
        == "\u4e00\u3002\u4e8c\u3002\u4e09\uff1a4"
    )


def test_saved_sentences_are_translated_one_by_one_where_each_is_known(catalog):
    catalog(
        ("{bug}: shown by {names}.", "\u66b4\u9732 {bug}\uff1a{names}\u3002"),
        ("A grid of bugs and inputs. {told}", "\u8868\u3002{told}"),
    )
    shown = "\u66b4\u9732 x\uff1aA\u3002\u66b4\u9732 y\uff1aB\u3002"
    assert translate_filled("x: shown by A. y: shown by B.", "some") == shown
    assert (
        translate_filled("A grid of bugs and inputs. x: shown by A. y: shown by B.", "some")
        == f"\u8868\u3002{shown}"
    )
