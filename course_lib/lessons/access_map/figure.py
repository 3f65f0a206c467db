"""The access map's figure: programs downwards, the addresses of each tensor to the right, a strip for each pass."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.lessons import style
from course_lib.lessons.access_map.model import (
    AccessMap,
    Pass,
    _describe_step,
    _list_verbs,
    describe,
    operation,
    runs,
    title,
)
from course_lib.lessons.access_map.run import Tensor
from course_lib.lessons.live import Picture
from course_lib.lessons.words import format_bytes, format_count

WINDOW = 6  # programs on show at a time
_LEFT, _RIGHT, _GAP = 1.2, 0.25, 0.16
_TOP, _STRIP, _LINE = 1.62, 0.15, 0.27
_HEAD = 0.42  # inches from the table's note to its header
_NARROW = 0.45  # inches of the narrowest tensor
_FINE = 400  # addresses told apart in a tensor's width
_NOT_YET = "#E9E9E6"
_SPARE = ("r", "dx", "dw", "dy", "db", "y", "mean", "w", "x")  # colours of tensors whose names the course does not know
_HATCH = {"read": ("", "////", "xxxx", "...."), "write": ("||||", "----"), "atomic": ("oo",)}


def window(state: AccessMap, program: int) -> range:
    """The programs on show when ``program`` is at work: pages of WINDOW."""
    first = program // WINDOW * WINDOW
    return range(first, min(first + WINDOW, state.recording.programs))


def draw(state: AccessMap, at: int, program: int | None = None) -> Picture:
    """Everything asked for up to step ``at``, which is outlined; ``program`` is on show even if it asks for nothing."""
    program = state.steps[at].access.program if program is None and state.steps else program or 0
    shown = window(state, program)
    tensors = list(state.recording.tensors)
    strips = max((len(state.passes[tensor.name]) for tensor in tensors), default=1)
    row = max(strips * _STRIP + 0.1, 0.3)
    used = sorted({p for passes in state.passes.values() for p in passes}, key=lambda p: p.rank)
    keys = _keys(used)
    table = _TOP + len(shown) * row + 0.68 + 0.3 * len(keys)
    height = table + _HEAD + (len(tensors) + 1) * _LINE - 0.02
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(state), font=12, bold=True)
    _step(axes, state, at)
    for i, number in enumerate(shown):
        style.write(axes, _LEFT - 0.12, _TOP + (i + 0.5) * row, f"program {number}", ha="right", bold=number == program)
    colours = _colours(tensors)
    left = _LEFT
    for tensor, width in zip(tensors, _widths(state, tensors, shown), strict=True):
        _tensor(axes, state, at, tensor, shown, colours[tensor.name], (left, width, row))
        left += width + _GAP
    below = _TOP + len(shown) * row
    paged = (
        f"programs {shown[0]} to {shown[-1]} of {state.recording.programs}; "
        if len(shown) < state.recording.programs
        else ""
    )
    style.write(axes, _LEFT, below + 0.38, f"{paged}addresses: elements from each tensor's start", colour=style.QUIET)
    for k, line in enumerate(keys):
        _legend(axes, line, below + 0.7 + 0.3 * k)
    _table(axes, state, at, tensors, used, table, colours)
    words = describe(state, at)
    alt = (
        f"{title(state)}. A row for each of the programs {shown[0]} to {shown[-1]}, the addresses of {', '.join(t.name for t in tensors)} side by side, "
        f"a hatched strip for each pass. {words}"
    )
    return Picture(style.png(figure, alt), alt, words)


def _step(axes: Axes, state: AccessMap, at: int) -> None:
    """What runs now: words, the line of the kernel, the lanes."""
    if not state.steps:
        style.write(axes, 0.2, 0.6, "Every lane of every access is masked, or there is none.")
        return
    access = state.steps[at].access
    style.write(axes, 0.2, 0.58, _fit(f"{operation(state, at)}: {_describe_step(state.steps[at])}", style.WIDTH - 0.4))
    if access.line is not None:
        text = state.recording.source.get(access.line, "").strip()
        style.write(axes, 0.2, 0.83, _fit(f"line {access.line}:  {text}", style.WIDTH - 0.4), colour=style.QUIET)
    lanes = access.offsets.size + access.masked
    if lanes:
        style.write(axes, _LEFT - 0.12, 1.1, f"{lanes} {'lane' if lanes == 1 else 'lanes'}", ha="right")
        width = min(style.WIDTH - _LEFT - _RIGHT - 1.3, 0.2 * lanes)
        live = width * access.offsets.size / lanes
        for x, size, kind in ((_LEFT, live, "active"), (_LEFT + live, width - live, "masked")):
            if size > 0:
                style.cell(axes, (x, 1.01), (size, 0.18), "", kind)
        if access.masked:
            style.write(axes, _LEFT + width + 0.1, 1.1, f"{access.masked} masked")


def _widths(state: AccessMap, tensors: list[Tensor], shown: range) -> list[float]:
    """Inches for each tensor: more for more addresses, and for the narrowest enough to be seen."""
    room = style.WIDTH - _LEFT - _RIGHT - _GAP * (len(tensors) - 1)
    weights = np.array(
        [max(_span(state, tensor, shown)[1] - _span(state, tensor, shown)[0] + 1, 1) ** 0.4 for tensor in tensors]
    )
    narrow = min(_NARROW, room / max(len(tensors), 1))
    return list(narrow + (room - narrow * len(tensors)) * weights / weights.sum()) if len(tensors) else []


def _span(state: AccessMap, tensor: Tensor, shown: range) -> tuple[int, int]:
    """The lowest and the highest offset that the programs on show touch; (0, 0) if they touch none."""
    touched = state.footprint(tensor.name, shown).values()
    return (min(int(o[0]) for o in touched), max(int(o[-1]) for o in touched)) if touched else (0, 0)


def _tensor(
    axes: Axes, state: AccessMap, at: int, tensor: Tensor, shown: range, colour: str, place: tuple[float, float, float]
) -> None:
    left, width, row = place
    low, high = _span(state, tensor, shown)
    scale = width / (high - low + 1)
    gap = max(1, (high - low) // _FINE)
    passes = state.passes[tensor.name]
    style.write(axes, left, _TOP - 0.22, tensor.name, bold=True)
    height = len(shown) * row
    axes.add_patch(
        Rectangle((left, _TOP), width, height, facecolor="none", edgecolor=style.GRID, linewidth=0.8, zorder=1)
    )
    for i in range(1, len(shown)):
        axes.plot(
            [left, left + width],
            [_TOP + i * row] * 2,
            color=style.GRID,
            linestyle="-",
            linewidth=0.8,
            marker="",
            zorder=1,
        )
    later, done = state.footprint(tensor.name, shown), state.footprint(tensor.name, shown, at + 1)
    strip = (row - 0.1) / max(len(passes), 1)

    def bars(program: int, a_pass: Pass, offsets: np.ndarray, **look) -> None:
        top = _TOP + (program - shown[0]) * row + 0.05 + passes.index(a_pass) * strip
        for first, last in runs(offsets, gap):
            axes.add_patch(
                Rectangle((left + (first - low) * scale, top), max((last - first + 1) * scale, 0.02), strip, **look)
            )

    for (program, a_pass), offsets in later.items():
        bars(program, a_pass, offsets, facecolor=_NOT_YET, edgecolor="none", zorder=1.5)
    for (program, a_pass), offsets in done.items():
        bars(program, a_pass, offsets, **_look(a_pass, colour), zorder=2)
    if state.steps and state.steps[at].access.tensor == tensor.name and state.steps[at].access.program in shown:
        access = state.steps[at].access
        for a_pass, offsets in state.steps[at].passes.items():
            bars(access.program, a_pass, np.unique(offsets), fill=False, edgecolor=style.INK, linewidth=2.2, zorder=4)
    if not later:
        return
    ends = [str(low)] if low == high else [str(low), str(high)]
    fits = sum(style.text_width(end) for end in ends) + 0.1 < width
    style.write(axes, left, _TOP + height + 0.14, ends[0], colour=style.QUIET)
    if len(ends) > 1 and fits:
        style.write(axes, left + width, _TOP + height + 0.14, ends[1], ha="right", colour=style.QUIET)


def _look(a_pass: Pass, colour: str) -> dict:
    return {
        "facecolor": colour,
        "hatch": _HATCH[a_pass.verb][a_pass.number - 1],
        "hatchcolor": style.text_on(colour),
        "edgecolor": style.INK,
        "linewidth": 0.5,
    }


def _keys(used: list[Pass]) -> list[list[Pass | None]]:
    """The legend in lines that fit; None is what is still to come."""
    lines: list[list[Pass | None]] = [[]]
    room = start = style.WIDTH - 0.4
    for key in [*used, None]:
        width = 0.55 + style.text_width(_name(key))
        if width > room and lines[-1]:
            lines.append([])
            room = start
        lines[-1].append(key)
        room -= width
    return lines


def _name(key: Pass | None) -> str:
    return "still to come" if key is None else key.words


def _legend(axes: Axes, keys: list[Pass | None], y: float) -> None:
    x = 0.2
    for key in keys:
        look = (
            {"facecolor": _NOT_YET, "edgecolor": style.GRID, "linewidth": 0.5}
            if key is None
            else _look(key, style.COLOURS["masked"])
        )
        axes.add_patch(Rectangle((x, y - 0.09), 0.36, 0.18, **look, zorder=2))
        style.write(axes, x + 0.43, y, _name(key))
        x += 0.55 + style.text_width(_name(key))


def _table(
    axes: Axes, state: AccessMap, at: int, tensors: list[Tensor], used: list[Pass], top: float, colours: dict[str, str]
) -> None:
    """Bytes asked for up to the step, by tensor and pass, with the lines that ask; and times over the tensor in the whole launch."""
    so_far = state.traffic(at + 1)
    columns = used
    left, right = _LEFT, style.WIDTH - _RIGHT
    step = (right - left - 1.15) / max(len(columns), 1)
    style.write(
        axes,
        0.2,
        top,
        "bytes so far, in brackets the lines of the kernel; on the right the whole launch",
        colour=style.QUIET,
    )
    y = top + _HEAD
    for i, a_pass in enumerate(columns):
        words = a_pass.words.replace(" ", "\n") if style.text_width(a_pass.words) > step - 0.1 else a_pass.words
        for line, text in enumerate(reversed(words.split("\n"))):
            style.write(axes, left + (i + 1) * step - 0.12, y - 0.17 * line, text, ha="right", colour=style.QUIET)
    style.write(axes, right, y, "times over it", ha="right", colour=style.QUIET)
    for k, tensor in enumerate(tensors):
        y = top + _HEAD + (k + 1) * _LINE
        axes.plot([0.2, right], [y - _LINE / 2] * 2, color=style.GRID, linestyle="-", linewidth=0.8, marker="")
        axes.add_patch(
            Rectangle((0.2, y - 0.07), 0.14, 0.14, facecolor=colours[tensor.name], edgecolor=style.INK, linewidth=0.6)
        )
        style.write(axes, 0.42, y, tensor.name, bold=True)
        for i, a_pass in enumerate(columns):
            if a_pass in state.passes[tensor.name]:
                part = so_far.get((tensor.name, a_pass))
                words = "0" if part is None else _short(part.bytes, part.lines, step - 0.06)
                style.write(axes, left + (i + 1) * step - 0.12, y, words, ha="right")
        times = ", ".join(format_count(state.times(tensor.name, verb), verb) for verb in _list_verbs(state, tensor))
        style.write(axes, right, y, times, ha="right")


def _short(size: int, lines: tuple[int, ...], room: float) -> str:
    amount = format_bytes(size).replace(" bytes", " B").replace(" byte", " B")
    with_lines = f"{amount} ({', '.join(map(str, lines))})"
    return with_lines if lines and style.text_width(with_lines) <= room else amount


def _colours(tensors: list[Tensor]) -> dict[str, str]:
    """The course's colour of a tensor it knows by name; for the others those that are left."""
    known = {tensor.name: style.COLOURS[tensor.name] for tensor in tensors if tensor.name in style.GROUPS["tensors"]}
    spare = [style.COLOURS[name] for name in _SPARE if style.COLOURS[name] not in known.values()]
    unknown = [tensor.name for tensor in tensors if tensor.name not in known]
    return known | {name: spare[i % len(spare)] for i, name in enumerate(unknown)}


def _fit(text: str, width: float) -> str:
    if style.text_width(text) <= width:
        return text
    while text and style.text_width(text + " ...") > width:
        text = text[:-1]
    return text + " ..."
