"""Numbers and counts in the format of every picture and command."""

from __future__ import annotations

import math


def format_number(value: float | None, digits: int = 4) -> str:
    """Return ``value`` with ``digits`` significant digits; a dash if it is None."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else "0" if value == 0 else f"{value:.{digits}g}"


def format_count(many: float, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 warp", "2 warps", "2.5 launches". ``plural`` is needed if it is not the noun and an s or es."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    amount = f"{many:.0f}" if many == round(many) else format_number(many, 3)
    return f"{amount} {noun if many == 1 else plural or noun + ending}"


def agree(many: int, one: str, more: str) -> str:
    """Return the form of a word that agrees with ``many``: agree(1, "lane lies", "lanes lie") is "lane lies"."""
    return one if many == 1 else more
