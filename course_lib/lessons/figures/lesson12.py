"""The figure of lesson 12: the buffer into which each row is added."""

from __future__ import annotations

from matplotlib.figure import Figure

from course_lib.lessons import style

SHARED_BUFFERS = (
    "Four programs with a row each, two buffers, one sum. Rows 0 and 2 add into buffer 0, rows 1 and 3 into buffer 1; the two buffers are "
    "then added into dw."
)


def shared_buffers(M: int = 4, GROUP: int = 2) -> Figure:
    """Draw the rows on the left, the buffers into which they are added in the middle, and the sum of the buffers on the right."""
    left, width, lane = 0.4, 1.6, 0.5
    drawn, axes = style.drawing(style.WIDTH, 0.75 + M * lane)
    style.write(axes, 0.2, 0.25, f"M = {M}, GROUP = {GROUP}: row r adds into buffer r % GROUP", bold=True, font=style.FONT + 2)
    top, middle = 0.65, 0.65 + (M - GROUP) * lane / 2
    for g in range(GROUP):
        rows = " + ".join(f"row {r}" for r in range(g, M, GROUP))
        style.cell(axes, (3.0, middle + g * lane), (width, lane - 0.12), f"buffer {g}", "active")
        style.write(axes, 3.0 + width + 0.08, middle + g * lane + 0.19, rows, colour=style.QUIET)
        axes.annotate(
            "", (6.35, 0.65 + (M - 0.24) * lane / 2), (5.85, middle + g * lane + 0.19), arrowprops={"arrowstyle": "->", "color": style.INK}
        )
    for r in range(M):
        style.cell(axes, (left, top + r * lane), (width, lane - 0.12), f"program {r}: row {r}", "done" if r % 2 == 0 else "waiting")
        ends = ((2.98, middle + r % GROUP * lane + 0.19), (left + width + 0.02, top + r * lane + 0.19))
        axes.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": style.INK, "linestyle": ("-", "--")[r % 2]})
    style.cell(axes, (6.4, 0.65 + (M - 0.24) * lane / 2 - 0.19), (0.8, lane - 0.12), "dw", "active")
    return drawn
