"""Tables of measurements in plain text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from course_lib.bench.measurement import Measurement

MARKS = {"refused": "-", "absent": "-", "error": "error", "wrong": "wrong"}


def over_floor(result: Measurement, keys: tuple[str, ...] = ("op", "provider")) -> str:
    """Time over floor, one line for each value of ``keys``, one column a row length; what has no time is named below."""
    lines = cells(
        ((tuple(row[key] for key in keys), row["N"], f"{row['over_floor']:.2f}") for row in result.rows),
        ((tuple(e.get(key) for key in keys), e["N"], MARKS[e["state"]]) for e in result.untimed if e.get("N")),
        "time over floor, N =",
    )
    return "\n".join([result.label(), *lines, *notes(result)])


def cells(rows: Iterable[tuple], marks: Iterable[tuple], corner: str) -> list[str]:
    """A table from (names, column, text); ``marks`` fill cells and never make a line alone.

    Lines come grouped by their first name, in the order in which the names first appear; columns sorted.
    """
    texts: dict[tuple[tuple, Hashable], str] = {}
    for names, column, text in rows:
        texts[names, column] = text
    lines = list(dict.fromkeys(names for names, _ in texts))
    groups = list(dict.fromkeys(names[0] for names in lines))
    lines.sort(key=lambda names: groups.index(names[0]))
    columns = (
        sorted({column for _, column in texts}) if all(isinstance(c, int) for _, c in texts) else list(dict.fromkeys(c for _, c in texts))
    )
    for names, column, text in marks:
        texts.setdefault((names, column), text)
    left = max([len(corner), *(len(" ".join(names)) for names in lines)]) + 2
    widths = [max(9, len(str(column)) + 2) for column in columns]
    head = corner.ljust(left) + "".join(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True))
    body = [
        " ".join(names).ljust(left)
        + "".join(f"{texts.get((names, column), '-'):>{width}}" for column, width in zip(columns, widths, strict=True))
        for names in lines
    ]
    return [head, *body]


def notes(result: Measurement) -> list[str]:
    """Why there is no time, one line for each provider and reason, with the shapes it is about."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for entry in result.untimed:
        reason = re.sub(r"(?<![\w.])\d{3,}(?![\w.])", "...", entry["note"])  # one line, not one for each row length
        shape = f"{entry['op']} {entry['M']} x {entry['N']}" if entry.get("op") else ""
        where.setdefault((entry["provider"], entry["state"], " ".join(reason.split())), []).append(shape)
    return [
        f"{provider}, {state}: {reason}" + (f" ({_shortened(shapes)})" if any(shapes) else "")
        for (provider, state, reason), shapes in where.items()
    ]


def _shortened(shapes: list[str]) -> str:
    return ", ".join(shapes) if len(shapes) <= 3 else f"{shapes[0]} ... {shapes[-1]}, {len(shapes)} in all"
