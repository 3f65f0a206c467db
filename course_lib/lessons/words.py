"""Numbers, sizes, times and counts as every picture writes them."""

from __future__ import annotations

import math

_NOISE = 1e-13  # what rounding leaves of a 0 in float64; a number of a person's is larger


def format_number(value: float | None, digits: int = 4) -> str:
    """``value`` to ``digits`` significant digits; a dash where it is not known."""
    if value is None:
        return "-"
    return "NaN" if math.isnan(value) else "0" if value == 0 else f"{value:.{digits}g}"


def format_decimal(value: float | None, places: int = 2) -> str:
    """``value`` with at most ``places`` decimals and no trailing zeros, for columns of numbers that are compared.

    A power of ten where the decimals would show 0, or where the number has six digits before the point.
    """
    if value is None or not math.isfinite(value):
        return format_number(value)
    if abs(value) >= 1e5 or _NOISE < abs(value) < 0.5 * 10.0**-places:
        digits, exponent = f"{value:.{int(abs(value) >= 1e5)}e}".split("e")
        return f"{digits}e{int(exponent)}"
    text = f"{value:.{places}f}".rstrip("0").rstrip(".") if places else f"{value:.0f}"
    return "0" if text in ("-0", "") else text


def format_bytes(size: float) -> str:
    """Bytes: exact below ten thousand, then three digits of kB, MB or GB (powers of 1000, as bandwidth has them)."""
    if size < 1e4:
        return format_count(round(size), "byte")
    scale, name = next((scale, name) for scale, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if size >= scale)
    return f"{size / scale:.3g} {name}" if size / scale < 100 else f"{size / scale:.0f} {name}"


def format_duration(us: float) -> str:
    """Microseconds, to three digits of µs or ms."""
    if us >= 1000:
        return f"{us / 1000:.3g} ms"
    return f"{us:.3g} µs" if us >= 0.01 else "under 0.01 µs"


def format_count(many: float, noun: str, plural: str = "") -> str:
    """ "1 warp", "2 warps", "1 launch", "2.5 launches"; ``plural`` where it is not the noun and an s."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    amount = f"{many:.0f}" if many == round(many) else format_number(many, 3)
    return f"{amount} {noun if many == 1 else plural or noun + ending}"


def agree(many: int, one: str, more: str) -> str:
    """The form of a word that goes with ``many``: agree(1, "lane lies", "lanes lie")."""
    return one if many == 1 else more
