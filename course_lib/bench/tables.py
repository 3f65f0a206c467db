"""Tables of measurements in plain text, with a limited width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from course_lib.bench.measurement import Measurement

WIDTH = 80
MARKS = {"refused": "-", "absent": "-", "error": "error", "wrong": "wrong"}
# longer messages, such as a compiler's, are cut; `course bench KIND --json` has all of the text
_LONGEST_REASON = 200
_GAP = "  "


def over_floor(
    result: Measurement, width: int = WIDTH, keys: tuple[str, ...] = ("op", "provider")
) -> str:
    """Write a table of time over floor: one line per combination of ``keys``, one column per row
    length. Notes name what was not timed."""
    lines = cells(
        (
            (tuple(row[key] for key in keys), row["N"], f"{row['over_floor']:.2f}")
            for row in result.rows
        ),
        (
            (tuple(e.get(key) for key in keys), e["N"], MARKS[e["state"]])
            for e in result.untimed
            if e.get("N")
        ),
        "time over floor, N =",
        width,
    )
    return "\n".join([result.label(), *lines, *notes(result, width)])


def cells(
    rows: Iterable[tuple], marks: Iterable[tuple], corner: str, width: int = WIDTH
) -> list[str]:
    """Make a table from tuples (names, column, text). ``marks`` fill empty cells, but do not create
    lines.

    Lines are grouped by their first name, in the order in which the names first appear. Columns are
    sorted if all are numbers.
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
        [head],
        [
            [str(column), *(texts.get((names, column), "-") for names in lines)]
            for column in columns
        ],
        width,
    )


def in_blocks(
    names: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], width: int = WIDTH
) -> list[str]:
    """Return the lines of a table. If it is wider than ``width``, it is cut into blocks, one below
    the other.

    Args:
        names: the columns on the left, which every block repeats; each begins with its heading.
        columns: the other columns, aligned on the right; each begins with its heading.
    """
    name_lines = [
        _GAP.join(cells)
        for cells in zip(*(_align(column, str.ljust) for column in names), strict=True)
    ]
    right = [_align(column, str.rjust) for column in columns]
    needed = len(_blocks(name_lines, right, width))
    # The narrowest width with as many blocks spreads the columns evenly, so that the last block is
    # not almost empty.
    narrowest = next(w for w in range(width + 1) if len(_blocks(name_lines, right, w)) == needed)
    return [
        line.rstrip() for block in _blocks(name_lines, right, narrowest) for line in ["", *block]
    ][1:]


def _blocks(name_lines: list[str], right: list[list[str]], width: int) -> list[list[str]]:
    blocks: list[list[str]] = []
    for cells in right:
        if not blocks or len(blocks[-1][0]) + len(_GAP) + len(cells[0]) > width:
            blocks.append(name_lines)
        blocks[-1] = [_GAP.join(pair) for pair in zip(blocks[-1], cells, strict=True)]
    return blocks


def _align(column: Sequence[str], align) -> list[str]:
    width = max(map(len, column))
    return [align(text, width) for text in column]


def notes(result: Measurement, width: int = WIDTH) -> list[str]:
    """Write why times are missing: one paragraph per provider and reason, with the shapes."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for entry in result.untimed:
        # merges notes that differ only in the row length
        reason = re.sub(r"(?<![\w.])\d{3,}(?![\w.])", "...", entry["note"])
        reason = textwrap.shorten(reason, _LONGEST_REASON, placeholder=" ...")
        shape = f"{entry['op']} {entry['M']} x {entry['N']}" if entry.get("op") else ""
        where.setdefault((entry["provider"], entry["state"], reason), []).append(shape)
    lines = []
    for (provider, state, reason), shapes in where.items():
        lines += paragraph(
            f"{provider}, {state}: {reason}" + (f" ({_shorten(shapes)})" if any(shapes) else ""),
            width,
        )
    return lines


def paragraph(text: str, width: int = WIDTH) -> list[str]:
    """Wrap ``text`` between words, and indent all lines but the first."""
    return textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


def _shorten(shapes: list[str]) -> str:
    return (
        ", ".join(shapes)
        if len(shapes) <= 3
        else f"{shapes[0]} ... {shapes[-1]}, {len(shapes)} in all"
    )
