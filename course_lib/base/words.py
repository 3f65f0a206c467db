"""Numbers and counts as every picture and command writes them."""

from __future__ import annotations

import math


def format_number(value: float | None, digits: int = 4) -> str:
    """``value`` to ``digits`` significant digits; a dash where it is not known."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else "0" if value == 0 else f"{value:.{digits}g}"


def format_count(many: float, noun: str, plural: str = "") -> str:
    """ "1 warp", "2 warps", "1 launch", "2.5 launches"; ``plural`` where it is not the noun and an s."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    amount = f"{many:.0f}" if many == round(many) else format_number(many, 3)
    return f"{amount} {noun if many == 1 else plural or noun + ending}"


def agree(many: int, one: str, more: str) -> str:
    """The form of a word that goes with ``many``: agree(1, "lane lies", "lanes lie")."""
    return one if many == 1 else more
