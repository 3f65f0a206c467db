"""Text that others wrote, made fit to be shown: nothing in it is obeyed, and it has an end.

A learner's file, what it prints, what it raises and what it is called all reach a terminal, a browser or another program. There an
escape sequence clears the screen, an override turns the direction of writing, and a line end begins a line of its own.
"""

from __future__ import annotations

import re
import unicodedata

# control, format (which turns the direction of writing, or takes no room), half of a surrogate pair, line and paragraph separators
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_CUT = " ... "
_UNBROKEN = re.compile(r"(?:`[^`]*`|\S)+")  # a word, or a command in backticks with what touches it


class _Visible(dict[int, int | str]):
    """What ``str.translate`` puts in place of a character."""

    def __missing__(self, number: int) -> int | str:
        character = chr(number)
        unseen = unicodedata.category(character) in _UNSEEN
        return character.encode("unicode_escape").decode("ascii") if unseen else number


_ASCII = {number: number for number in range(32, 127)}
_TEXT = _Visible(_ASCII | {ord("\n"): ord("\n"), ord("\t"): ord("\t")})
_LINE = _Visible(_ASCII)


def make_visible(text: str) -> str:
    r"""``text`` with each character that is obeyed and not seen written as Python writes it: ``\x1b``, ``\u202e``.

    Line ends, CRLF among them, and tabs stay. What it returns comes back unchanged from a second call.
    """
    return text.replace("\r\n", "\n").translate(_TEXT)


def make_visible_line(text: str) -> str:
    r"""As :func:`make_visible` for what has to stay on its line, such as a file's name: line ends and tabs are ``\n`` and ``\t``."""
    return text.translate(_LINE)


def shorten(text: str, most: int) -> str:
    """``text``, or its beginning and its end, in at most ``most`` characters."""
    if len(text) <= most:
        return text
    kept = max(most - len(_CUT), 0)
    return f"{text[: kept - kept // 2]}{_CUT}{text[len(text) - kept // 2 :]}"[:most]


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """``text`` in lines of at most ``width`` characters, the first after ``first``, the others after ``rest``.

    What stands in backticks is there to be copied, and a path too: neither is broken or cut, so a line may be longer than ``width``.
    """
    lines = [first]
    started = False
    for word in _UNBROKEN.findall(text):
        if started and len(lines[-1]) + 1 + len(word) > width:
            lines.append(rest)
            started = False
        lines[-1] += f" {word}" if started else word
        started = True
    return lines
