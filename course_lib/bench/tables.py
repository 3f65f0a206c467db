"""Tables of measurements in plain text, no wider than asked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from course_lib.bench.measurement import Measurement

WIDTH = 80
MARKS = {"refused": "-", "absent": "-", "error": "error", "wrong": "wrong"}
_LONGEST_REASON = 200  # of a compiler's message: its beginning; `course bench KIND --json` has all of it
_GAP = "  "


def over_floor(result: Measurement, width: int = WIDTH, keys: tuple[str, ...] = ("op", "provider")) -> str:
    """Time over floor, one line for each value of ``keys``, one column a row length; what has no time is named below."""
    lines = cells(
        ((tuple(row[key] for key in keys), row["N"], f"{row['over_floor']:.2f}") for row in result.rows),
        ((tuple(e.get(key) for key in keys), e["N"], MARKS[e["state"]]) for e in result.untimed if e.get("N")),
        "time over floor, N =",
        width,
    )
    return "\n".join([result.label(), *lines, *notes(result, width)])


def cells(rows: Iterable[tuple], marks: Iterable[tuple], corner: str, width: int = WIDTH) -> list[str]:
    """A table from (names, column, text); ``marks`` fill cells and never make a line alone.

    Lines come grouped by their first name, in the order in which the names first appear; columns that are numbers are sorted.
    """
    texts: dict[tuple[tuple, int | str], str] = {}
    for names, column, text in rows:
        texts[names, column] = text
    lines = list(dict.fromkeys(names for names, _ in texts))
    groups = list(dict.fromkeys(names[0] for names in lines))
    lines.sort(key=lambda names: groups.index(names[0]))
    columns = list(dict.fromkeys(column for _, column in texts))
    numbers = [column for column in columns if isinstance(column, int)]
    columns = sorted(numbers) if len(numbers) == len(columns) else columns
    for names, column, text in marks:
        texts.setdefault((names, column), text)
    head = [corner, *(" ".join(names) for names in lines)]
    return in_blocks(
        [head], [[str(column), *(texts.get((names, column), "-") for names in lines)] for column in columns], width
    )


def in_blocks(names: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    """The lines of a table, in blocks one below the other where it is wider than ``width``.

    Args:
        names: the columns on the left, which every block repeats; each with its heading first.
        columns: the others, aligned on the right, each with its heading first.
    """
    left = [_GAP.join(cells) for cells in zip(*(_align(column, str.ljust) for column in names), strict=True)]
    right = [_align(column, str.rjust) for column in columns]
    needed = len(_blocks(left, right, width))
    narrowest = next(
        w for w in range(width + 1) if len(_blocks(left, right, w)) == needed
    )  # so that no block has one column only
    return [line.rstrip() for block in _blocks(left, right, narrowest) for line in ["", *block]][1:]


def _blocks(left: list[str], right: list[list[str]], width: int) -> list[list[str]]:
    blocks: list[list[str]] = []
    for cells in right:
        if not blocks or len(blocks[-1][0]) + len(_GAP) + len(cells[0]) > width:
            blocks.append(left)
        blocks[-1] = [_GAP.join(pair) for pair in zip(blocks[-1], cells, strict=True)]
    return blocks


def _align(column: Sequence[str], align) -> list[str]:
    width = max(map(len, column))
    return [align(text, width) for text in column]


def notes(result: Measurement, width: int = WIDTH) -> list[str]:
    """Why there is no time, a paragraph for each provider and reason, with the shapes it is about."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for entry in result.untimed:
        reason = re.sub(r"(?<![\w.])\d{3,}(?![\w.])", "...", entry["note"])  # one line, not one for each row length
        reason = textwrap.shorten(reason, _LONGEST_REASON, placeholder=" ...")
        shape = f"{entry['op']} {entry['M']} x {entry['N']}" if entry.get("op") else ""
        where.setdefault((entry["provider"], entry["state"], reason), []).append(shape)
    lines = []
    for (provider, state, reason), shapes in where.items():
        lines += paragraph(f"{provider}, {state}: {reason}" + (f" ({_shorten(shapes)})" if any(shapes) else ""), width)
    return lines


def paragraph(text: str, width: int = WIDTH) -> list[str]:
    """``text`` wrapped at words, its further lines indented."""
    return textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


def _shorten(shapes: list[str]) -> str:
    return ", ".join(shapes) if len(shapes) <= 3 else f"{shapes[0]} ... {shapes[-1]}, {len(shapes)} in all"
