"""Text from other people, made safe to show: control characters become visible, and long text is
cut.

A learner's file, its name, its output and its exceptions all reach a terminal, a browser or another
program. Unfiltered, an escape sequence could clear the screen, an override character reverse the
writing direction, and a line break fake a line of its own.
"""

from __future__ import annotations

import re
import unicodedata

# Unicode categories that are not seen: control, format (reverses the direction or has no width),
# surrogate, line and paragraph separator.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_CUT = " ... "
# a word, or a command in backticks together with the characters that touch it
_UNBROKEN = re.compile(r"(?:`[^`]*`|\S)+")


class _Visible(dict[int, int | str]):
    """Table for ``str.translate`` that replaces characters that are not seen."""

    def __missing__(self, number: int) -> int | str:
        character = chr(number)
        unseen = unicodedata.category(character) in _UNSEEN
        return character.encode("unicode_escape").decode("ascii") if unseen else number


_ASCII = {number: number for number in range(32, 127)}
_TEXT = _Visible(_ASCII | {ord("\n"): ord("\n"), ord("\t"): ord("\t")})
_LINE = _Visible(_ASCII)


def make_visible(text: str) -> str:
    r"""Return ``text`` with each character that acts without being seen in Python's notation:
    ``\x1b``, ``\u202e``.

    Line ends and tabs stay; CRLF becomes a plain line end. A second call changes nothing.
    """
    return text.replace("\r\n", "\n").translate(_TEXT)


def make_visible_line(text: str) -> str:
    r"""Return ``text`` as :func:`make_visible` does, but on one line, as for a file name: line ends
    and tabs become ``\n`` and ``\t``."""
    return text.translate(_LINE)


def shorten(text: str, most: int) -> str:
    """Return ``text`` if it has at most ``most`` characters; otherwise its beginning and its end,
    shortened to that length."""
    if len(text) <= most:
        return text
    kept_length = max(most - len(_CUT), 0)
    return f"{text[: kept_length - kept_length // 2]}{_CUT}{text[len(text) - kept_length // 2 :]}"[
        :most
    ]


def wrap(text: str, width: int, first_indent: str = "", later_indent: str = "") -> list[str]:
    """Return ``text`` in lines of at most ``width`` characters, with ``first_indent`` before the
    first line and ``later_indent`` before the others.

    A text in backticks and a path are meant to be copied, so they are never broken: a line with one
    may be longer than ``width``.
    """
    lines = [first_indent]
    started = False
    for word in _UNBROKEN.findall(text):
        if started and len(lines[-1]) + 1 + len(word) > width:
            lines.append(later_indent)
            started = False
        lines[-1] += f" {word}" if started else word
        started = True
    return lines
