"""Text of others, made fit to be shown."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.text import make_visible, make_visible_line, shorten, wrap

OBEYED = {
    "\x1b[2J": r"\x1b[2J", "\x9b31m": r"\x9b31m", "\x07\x08\x7f\0": r"\x07\x08\x7f\x00",
    "\r": r"\r", "\x0b\x0c": r"\x0b\x0c",
    "\x85": r"\x85", "\u2028\u2029": r"\u2028\u2029",
    "\u202a\u202b\u202c\u202d\u202e": r"\u202a\u202b\u202c\u202d\u202e",
    "\u2066\u2067\u2068\u2069": r"\u2066\u2067\u2068\u2069",
    "\u200b\u200d\u2060\ufeff\xad": r"\u200b\u200d\u2060\ufeff\xad",
    "\ud800": r"\ud800", "\U000e0041": r"\U000e0041",
}  # fmt: skip


@pytest.mark.parametrize(("text", "seen"), OBEYED.items(), ids=OBEYED.values())
def test_what_is_obeyed_is_made_visible(text, seen):
    assert make_visible(f"a{text}b") == make_visible_line(f"a{text}b") == f"a{seen}b"


def test_every_character_there_is():
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        shown = make_visible_line(character)
        if unicodedata.category(character)[0] == "C" and unicodedata.category(character) not in (
            "Co",
            "Cn",
        ):
            assert shown.isascii() and shown.isprintable() and shown.startswith("\\")
        else:
            assert shown == character or unicodedata.category(character) in ("Zl", "Zp")


def test_what_people_write_stays():
    text = "x̂ = (x − µ)·σ⁻¹, naïve café, 数, भाषा, \\x1b as text, 😀\n\tindented"
    assert make_visible(text) == text


def test_line_ends_and_tabs_stay_where_lines_may_be():
    assert make_visible("a\tb\r\nc\rd\n") == "a\tb\nc\\rd\n"
    assert make_visible_line("a\tb\r\nc\n") == r"a\tb\r\nc\n"


@given(st.text(st.characters(exclude_categories=[])))
def test_a_second_call_changes_nothing(text):
    assert make_visible(make_visible(text)) == make_visible(text)
    assert make_visible_line(make_visible_line(text)) == make_visible_line(text)
    assert not re.search(
        r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", make_visible_line(text)
    )


@given(st.text(max_size=60), st.integers(0, 70))
def test_a_text_is_shortened_in_its_middle(text, most):
    short = shorten(text, most)
    assert len(short) <= most and (short == text if len(text) <= most else True)
    if len(text) > most > 6:
        assert short[0] == text[0] and " ... " in short and short[-1] == text[-1]


def test_wrapped_text_keeps_commands_and_paths_whole():
    text = (
        "Do this: `chmod +x /a/long/path to/ptxas`, and then (/another/long/path/without/a/space)"
        " it is done."
    )
    lines = wrap(text, 24, "-> ", "   ")
    assert any("`chmod +x /a/long/path to/ptxas`," in line for line in lines)
    assert " ".join(line.strip() for line in lines).removeprefix("-> ") == text
    assert all(len(line) <= 24 for line in lines if "path" not in line) and lines[1].startswith(
        "   "
    )
    assert wrap("a lone ` is a word", 10) == ["a lone `", "is a word"] and wrap("", 10) == [""]
