"""Lesson 06: what the compiler makes of a kernel, and the PTX and SASS of the source lines that the reader selects.

Every number comes from ``compile_report``. A new setting redraws at once with what is known; the reports still missing
are made in a thread beside the kernel's cells, one at a time, and each is shown when it is there.
"""

from __future__ import annotations

import html
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.compiler import KernelSource, Pointer
from course_lib.lessons import style
from course_lib.lessons.compiled_kernel.figure import draw
from course_lib.lessons.compiled_kernel.model import (
    ARCHS,
    BLOCKS,
    DTYPES,
    WARPS,
    Choice,
    Column,
    Reports,
    Subject,
    code_of,
    family,
)
from course_lib.lessons.live import LiveFigure, Picture, wide

_AS_GIVEN = "as given"
_MOST_LINES = 30  # lines of the listing that the sliders choose at once
_MOST_CODE = 400  # lines of PTX or SASS on show; a spilling kernel has thousands
_BOX = (
    f"background: {style.PANEL}; color: {style.INK}; border: 1px solid {style.QUIET}; border-radius: 4px; padding: 4px 8px; margin: 0; "
    "overflow: auto; height: 21em; line-height: 1.35; font-family: monospace; font-size: 12px; white-space: pre"
)
_STYLE = "<style>.course-source select { font-family: monospace; font-size: 12px; line-height: 1.35 } .course-code { flex: 1 1 320px }</style>"


class Explorer(LiveFigure):
    """The figure of LiveFigure, a listing whose lines can be selected, and what became of them.

    ``listing.value`` are the selected line numbers of the kernel's file. Two sliders, ``line`` and ``count``, select by
    keyboard: in JupyterLab the up and down keys leave a list for the next cell. ``settle()`` waits for the reports.
    """

    def __init__(self, subjects: Sequence[Subject], controls: Mapping[str, Any]) -> None:
        self.reports = Reports(subjects)
        self._only = subjects[0].label
        self._working: threading.Thread | None = None
        self._guard = threading.Lock()
        self._shown: tuple[Any, ...] | None = None  # what the listing was last filled from
        self.listing = ipywidgets.SelectMultiple(rows=18, layout=ipywidgets.Layout(width="calc(100% - 8px)"))
        self.listing.add_class("course-source")
        self.line = ipywidgets.IntSlider(
            1, 1, 1, description="line", layout=wide(330), style={"description_width": "auto"}
        )
        self.count = ipywidgets.IntSlider(
            1, 1, _MOST_LINES, description="lines", layout=wide(280), style={"description_width": "auto"}
        )
        self._head = ipywidgets.HTML()
        self._ptx, self._sass = ipywidgets.HTML(), ipywidgets.HTML()
        for panel in (self._ptx, self._sass):
            panel.add_class("course-code")
        self._compile_all({name: control.value for name, control in controls.items()})
        super().__init__(self._draw_known, controls)
        row = ipywidgets.Layout(flex_flow="row wrap", width="100%")
        panels, sliders = (
            ipywidgets.HBox([self._ptx, self._sass], layout=row),
            ipywidgets.HBox([self.line, self.count], layout=row),
        )
        self.children = (*self.children, ipywidgets.HTML(_STYLE), self._head, sliders, self.listing, panels)
        self.layout.max_width = "1100px"
        self._watch(True)
        self._show_source()

    @property
    def choice(self) -> Choice:
        return self._choice(self.values())

    @property
    def column(self) -> Column:
        """The chosen report, or why there is none."""
        return self.reports.view(self.choice).chosen

    def code(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """PTX and SASS of the selected lines, as shown."""
        return code_of(self.column, self.listing.value)

    def settle(self) -> None:
        """Wait until every report of the present settings is there."""
        with self._guard:
            working = self._working
        if working is not None:
            working.join()

    def reset(self) -> None:
        self.reports.forget_failures()
        super().reset()

    def _choice(self, values: Mapping[str, Any]) -> Choice:
        return Choice(
            values.get("kernel", self._only),
            values["block"],
            values["num_warps"],
            values.get("dtype", _AS_GIVEN),
            values["arch"],
        )

    def _draw_known(self, **values: Any) -> Picture:
        return draw(self.reports.view(self._choice(values)))

    def _compile_all(self, values: Mapping[str, Any]) -> None:
        """The first picture, in the caller's thread: complete, because a page without a live kernel keeps it."""
        while (wanted := self.reports.missing(self._choice(values))) is not None:
            self.reports.make(wanted)

    def _redraw(self) -> None:
        super()._redraw()
        self._show_source()
        with self._guard:
            if self._working is None and self._missing() is not None:
                self._working = threading.Thread(target=self._work, name="course-explorer", daemon=True)
                self._working.start()

    def _missing(self) -> Choice | None:
        try:
            return self.reports.missing(self.choice)
        except CourseError:  # the learner's file: the picture says what is the matter with it
            return None

    def _work(self) -> None:
        while True:
            with self._guard:
                wanted = (
                    self._missing()
                )  # of the settings as they are now: those that were passed over are not compiled
                if wanted is None:
                    self._working = None
                    return
            self.reports.make(wanted)
            super()._redraw()
            self._show_source()

    def _show_source(self) -> None:
        """Fill the listing if the kernel or its report changed, and keep the selection where it still means something."""
        choice = self.choice
        try:
            source, column = self.reports.source(choice), self.column
        except Exception as problem:  # the picture has shown it in words already
            source, column = KernelSource("", "", "", 1), Column(choice.num_warps, None, str(problem))
        filled = (source, column.report)
        if filled != self._shown:
            same = self._shown is not None and self._shown[0] == source
            self._shown = filled
            keep = self.listing.value if same else ()
            self._watch(False)
            self.listing.options = [(label, number) for number, label in listed(source, column)]
            self.listing.value = keep or _first_load(source, column)
            last = source.first_line + len(self.listing.options) - 1
            self.line.min = self.line.max = min(
                source.first_line, self.line.min
            )  # so that the new limits may come in any order
            self.line.max, self.line.min = max(last, source.first_line), source.first_line
            self._watch(True)
            where = f"{source.file}, from line {source.first_line}" if source.text else "no source"
            self._head.value = (
                f"<b>{html.escape(source.name)}</b> ({html.escape(str(where))}). Each line: its number, how many PTX and how many SASS "
                "instructions it became. Click on lines, with Shift or Ctrl on several, or move the sliders."
            )
        self._show_chosen_lines()

    def _watch(self, on: bool) -> None:
        for control, called in (
            (self.listing, self._show_chosen_lines),
            (self.line, self._select_lines),
            (self.count, self._select_lines),
        ):
            (control.observe if on else control.unobserve)(called, names="value")

    def _select_lines(self, change: Mapping[str, Any]) -> None:
        numbers = {number for _, number in self.listing.options}
        self.listing.value = tuple(
            n for n in range(self.line.value, self.line.value + self.count.value) if n in numbers
        )

    def _show_chosen_lines(self, change: Mapping[str, Any] | None = None) -> None:
        if self.listing.value:
            self._watch(False)
            self.line.value = min(self.listing.value)
            self.count.value = min(max(self.listing.value) - self.line.value + 1, _MOST_LINES)
            self._watch(True)
        column = (
            self.column
            if self._shown is not None and self._shown[0].text
            else Column(self.choice.num_warps, None, "no source")
        )
        for panel, name, code in zip(
            (self._ptx, self._sass), ("PTX", "SASS"), code_of(column, self.listing.value), strict=True
        ):
            panel.value = code_panel(name, code, self.listing.value, column)


def listed(source: KernelSource, column: Column) -> list[tuple[int, str]]:
    """(line number, what the listing says) of each line of the kernel: number, PTX and SASS instructions, text."""
    rows = []
    for number, text in enumerate(source.text.split("\n") if source.text else [], source.first_line):
        made = column.report.lines.get(number) if column.report else None
        counts = f"{len(made.ptx):4} {len(made.sass):4}" if made else "   ·    ·"
        rows.append((number, f"{number:4} {counts}  {text}"))
    return rows


def _first_load(source: KernelSource, column: Column) -> tuple[int, ...]:
    """The first line with a load that became instructions; the first line with any, if there is none."""
    texts = source.text.split("\n") if source.text else []
    made = column.report.lines if column.report else {}
    lines = [n for n in range(source.first_line, source.first_line + len(texts)) if n in made]
    # a call that is broken over lines may have become instructions of the line above it
    for rows in (1, 2):
        loads = [n for n in lines if "tl.load(" in "".join(texts[n - source.first_line : n - source.first_line + rows])]
        if loads:
            return (loads[0],)
    return tuple(lines[:1])


def code_panel(name: str, code: Sequence[tuple[int, str]], lines: Sequence[int], column: Column) -> str:
    """One listing as HTML: the instructions of the selected lines, with their numbers; or why there are none."""
    chosen = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines" if lines else "no line"
    if code:
        shown = code[:_MOST_CODE]
        rows, before = [], shown[0][0] - 1
        for number, text in shown:
            if number != before + 1:
                rows.append("        ⋮")
            rows.append(f"{number:6}  {html.escape(text)}")
            before = number
        if len(code) > len(shown):
            rows.append(f"        and {len(code) - len(shown)} more instructions")
        body = "\n".join(rows)
    elif column.refused:
        body = "There is no report: see the words above."
    elif column.report is None:
        body = "compiling ..."
    elif not lines:
        body = "Select a line of the listing."
    else:
        body = "No instruction carries this line:\nit is known when compiling, or it\nwas folded into another one."
    count = f"{len(code)} {name} {'instruction' if len(code) == 1 else 'instructions'}"
    label = html.escape(f"{name} of {chosen}: {count}")
    return f'<div style="margin: 6px 6px 2px 0"><b>{label}</b></div><pre tabindex="0" role="region" aria-label="{label}" style="{_BOX}">{body}</pre>'


def kernel_explorer(
    kernel: str = "resident",
    BLOCK: int = 8192,
    num_warps: int = 4,
    dtype: str = "fp16",
    arch: str = "sm_90",
    rows: int = 1,
) -> Explorer:
    """The compiler's report on a LayerNorm forward kernel, with controls, and the code of the lines you select.

    Args:
        kernel: "resident" or "blocked", the course's own; "yours, 06a" or "yours, 06b", the exercise files as they are now.
        BLOCK: 128 to 8192. The resident kernels get rows of BLOCK columns, the blocked ones rows of 8192.
        dtype: fp16, bf16 or fp32, of x, y, w and b.
        arch: sm_80, sm_90, sm_100 or sm_120. No such GPU has to be there.
        rows: ROWS of the resident kernels.

    Raises: CourseError if an argument is outside those.
    """
    subjects = family(rows)
    labels = [subject.label for subject in subjects]
    _within("kernel", kernel, labels)
    _within("dtype", dtype, DTYPES)
    _within("BLOCK", BLOCK, BLOCKS)
    controls = {
        "kernel": ipywidgets.Dropdown(options=labels, value=kernel, description="kernel", layout=wide(160)),
        **_common(BLOCKS, BLOCK, num_warps, arch),
        "dtype": ipywidgets.Dropdown(options=DTYPES, value=dtype, description="dtype", layout=wide(120)),
    }
    return Explorer(subjects, controls)


def explore(
    kernel: Any,
    arguments: Mapping[str, Any] | Sequence[Any] | Callable[..., Any],
    constexprs: Mapping[str, Any] | None = None,
    *,
    block: str = "BLOCK",
    blocks: Sequence[int] | None = None,
    num_warps: int = 4,
    arch: str = "sm_90",
) -> Explorer:
    """The same for any @triton.jit kernel: one of a notebook cell, of a file, or a KernelSource.

    Args:
        arguments: as ``compile_report`` takes them: tensors, Pointer, numbers, in the kernel's order or by name. Or a
            function of ``dtype`` and, if it has a second parameter, of the block size, that returns them: then dtype is a control too.
        constexprs: the kernel's tl.constexpr arguments by name. ``block`` names the one that is a control; ``blocks`` are
            its values, by default a few powers of two around the one given.

    Raises: CourseError if an option is impossible; TypeError if it is no kernel or an argument is of another kind.
    """
    constexprs = dict(constexprs or {})
    first = constexprs.get(block, 1)
    sizes = (
        tuple(blocks)
        if blocks
        else tuple(sorted({first, *(first * 2**k for k in (-2, -1, 1, 2) if first * 2**k >= 16)}))
    )
    sizes = sizes if block in constexprs else (1,)
    _within(block, first, sizes)
    takes_block = callable(arguments) and len(inspect.signature(arguments).parameters) > 1

    def launch(dtype: str, size: int) -> tuple[Any, Mapping[str, Any]]:
        given = (arguments(dtype, size) if takes_block else arguments(dtype)) if callable(arguments) else arguments
        return given, constexprs | ({block: size} if block in constexprs else {})

    name = kernel.name if isinstance(kernel, KernelSource) else kernel.__name__

    def words(dtype: str, size: int) -> str:
        constants = ", ".join(f"{key} = {value}" for key, value in launch(dtype, size)[1].items())
        return "; ".join(part for part in (_typed(launch(dtype, size)[0]), constants) if part)

    controls = _common(sizes, first, num_warps, arch, block)
    if callable(arguments):
        controls["dtype"] = ipywidgets.Dropdown(options=DTYPES, value=DTYPES[0], description="dtype", layout=wide(120))
    return Explorer([Subject(name, lambda: kernel, launch, words)], controls)


def _typed(arguments: Mapping[str, Any] | Sequence[Any]) -> str:
    """ "fp16, fp16, fp32" for the tensors among the arguments."""
    values = arguments.values() if isinstance(arguments, Mapping) else arguments
    found = [
        value.dtype if isinstance(value, Pointer) else str(value.dtype).split(".")[-1]
        for value in values
        if hasattr(value, "dtype")
    ]
    return f"tensors of {', '.join(dict.fromkeys(found))}" if found else ""


def _common(blocks: Sequence[int], size: int, num_warps: int, arch: str, name: str = "BLOCK") -> dict[str, Any]:
    _within("num_warps", num_warps, WARPS)
    _within("arch", arch, tuple(ARCHS))
    return {
        "block": ipywidgets.SelectionSlider(
            options=list(blocks), value=size, description=name, disabled=len(blocks) < 2, layout=wide(230)
        ),
        "num_warps": ipywidgets.SelectionSlider(
            options=WARPS, value=num_warps, description="num_warps", layout=wide(230)
        ),
        "arch": ipywidgets.Dropdown(
            options=[(words, key) for key, words in ARCHS.items()], value=arch, description="arch", layout=wide(190)
        ),
    }


def _within(name: str, value: Any, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        raise CourseError(f"the explorer takes {name} from {', '.join(map(str, allowed))}; you asked for {value!r}.")
