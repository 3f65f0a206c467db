"""Numbers, counts and lists in the format of every picture and command."""

from __future__ import annotations

import math
from collections.abc import Iterable

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_

AND, OR = N_(" and "), N_(" or ")


def format_number(value: float | None, digits: int = 4) -> str:
    """Return ``value`` with ``digits`` significant digits; a dash if it is None."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else "0" if value == 0 else f"{value:.{digits}g}"


def format_count(many: float, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 warp", "2 warps", "2.5 launches". ``plural`` is needed if
    it is not the noun and an s or es."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    amount = f"{many:.0f}" if many == round(many) else format_number(many, 3)
    return f"{amount} {noun if many == 1 else plural or noun + ending}"


def agree(many: int, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with ``many``: agree(1, "lane lies", "lanes lie") is
    "lane lies"."""
    return singular if many == 1 else plural


def list_words(words: Iterable[object], conjunction: str = "") -> str:
    """Return a list in the chosen language: "a, b, c", or "a, b and c" if ``conjunction`` is AND
    (or OR)."""
    names = [str(word) for word in words]
    comma = _("{word}, {next}").format(word="", next="")
    return (
        _(conjunction).join(filter(None, [comma.join(names[:-1]), *names[-1:]]))
        if conjunction
        else comma.join(names)
    )
