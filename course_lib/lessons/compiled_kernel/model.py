"""What the compiled-kernel explorer knows: a kernel's configurations, the compiler's reports about them, and words for both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.compiler import (
    CompileError,
    CompileReport,
    KernelSource,
    Pointer,
    Residency,
    compile_report,
    residency,
    source_text,
)
from course_lib.grading.public import NotAttempted, Unreadable, read_own_attempt

WARPS = (1, 2, 4, 8, 16, 32)
ARCHS = {"sm_80": "sm_80 (A100)", "sm_90": "sm_90 (H100)", "sm_100": "sm_100 (B200)", "sm_120": "sm_120 (RTX 50)"}
DTYPES = ("fp16", "bf16", "fp32")
BLOCKS = (128, 256, 512, 1024, 2048, 4096, 8192)
LONG_ROW = 8192  # columns of the blocked kernel's row, whatever BLOCK is
LIMIT = 30.0  # seconds a report may take
_PASSING = ("crash", "timeout")  # what another try may not meet again


@dataclass(frozen=True)
class Subject:
    """A kernel to explore.

    ``kernel`` gives the @triton.jit function or the KernelSource, asked anew each time, because a file may have changed.
    ``launch`` takes dtype and BLOCK and gives arguments and constexprs; ``words`` says with what it was compiled.
    """

    label: str
    kernel: Callable[[], Any]
    launch: Callable[[str, int], tuple[Any, Mapping[str, Any]]]
    words: Callable[[str, int], str]


@dataclass(frozen=True)
class Choice:
    """The settings of one report."""

    subject: str
    block: int
    num_warps: int
    dtype: str
    arch: str


@dataclass(frozen=True)
class Column:
    """One value of num_warps: its report, or why there is none ("" while the compiler is still at it)."""

    num_warps: int
    report: CompileReport | None
    refused: str = ""

    @property
    def residency(self) -> Residency | None:
        if self.report is None:
            return None
        return residency(self.report.arch, self.report.registers, self.report.shared_bytes, self.num_warps)


@dataclass(frozen=True)
class View:
    """What the figure shows: one column a num_warps, and which of them is chosen."""

    choice: Choice
    words: str  # with what it was compiled
    columns: tuple[Column, ...]

    @property
    def chosen(self) -> Column:
        return next(column for column in self.columns if column.num_warps == self.choice.num_warps)

    @property
    def complete(self) -> bool:
        return all(column.report is not None or column.refused for column in self.columns)


class Reports:
    """The compiler's answers, each asked for once. Any thread may ask; the texts of the kernels are part of the key."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = {subject.label: subject for subject in subjects}
        self._known: dict[tuple[Choice, str], CompileReport | Exception] = {}
        self._lock = threading.Lock()

    def source(self, choice: Choice) -> KernelSource:
        """The text of the chosen kernel's function, with its line numbers.

        Raises: CourseError if it has none, or the learner's file is still unsolved.
        """
        return source_text(self.subjects[choice.subject].kernel())

    def view(self, choice: Choice) -> View:
        """What is known now, without compiling.

        Raises: CourseError as ``source`` does; what went wrong in the course itself while a report was made.
        """
        columns = []
        for warps in WARPS:
            at = _with_warps(choice, warps)
            known = self._known.get(self._key(at))
            if isinstance(known, Exception) and not isinstance(known, CourseError):
                raise known
            if isinstance(known, CourseError):
                columns.append(Column(warps, None, str(known)))
            else:
                columns.append(Column(warps, known))
        return View(choice, self.subjects[choice.subject].words(choice.dtype, choice.block), tuple(columns))

    def missing(self, choice: Choice) -> Choice | None:
        """The next report to ask for: the chosen one, then those of the other num_warps, the quickest to compile first.

        Raises: CourseError as ``source`` does.
        """
        for warps in (choice.num_warps, *reversed(WARPS)):
            at = _with_warps(choice, warps)
            if self._key(at) not in self._known:
                return at
        return None

    def make(self, choice: Choice) -> None:
        """Ask the compiler, unless it is known. What goes wrong is kept as the answer."""
        key = self._key(choice)
        if key in self._known:
            return
        subject = self.subjects[choice.subject]
        try:
            arguments, constexprs = subject.launch(choice.dtype, choice.block)
            made: CompileReport | Exception = compile_report(
                subject.kernel(), arguments, constexprs, num_warps=choice.num_warps, arch=choice.arch, limit=LIMIT
            )
        except Exception as problem:  # shown in place of the report; in the thread that compiles nobody would see it
            made = problem
        with self._lock:
            self._known[key] = made

    def forget_failures(self) -> None:
        """Ask again, next time, where the compiler crashed, took too long, or could not be started."""
        with self._lock:
            self._known = {key: made for key, made in self._known.items() if not _may_pass(made)}

    def _key(self, choice: Choice) -> tuple[Choice, str]:
        return choice, _read_text(self.subjects[choice.subject].kernel())


def _may_pass(made: CompileReport | Exception) -> bool:
    return isinstance(made, Exception) and not (isinstance(made, CompileError) and made.cause not in _PASSING)


def _read_text(kernel: Any) -> str:
    return kernel.text if isinstance(kernel, KernelSource) else source_text(kernel).text


def _with_warps(choice: Choice, warps: int) -> Choice:
    return Choice(choice.subject, choice.block, warps, choice.dtype, choice.arch)


# ---- the kernels of the course, and the learner's


def family(rows: int = 1) -> list[Subject]:
    """LayerNorm forward: the course's blocked and resident kernel, and the learner's two, on packed rows with w and b."""
    from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

    both = {"HAS_W": True, "HAS_B": True}

    def blocked(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), LONG_ROW, 1, LONG_ROW, 1, LONG_ROW, 1e-5], both | {"BLOCK": block}

    def resident(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), block, 1, block, 1, 4096, block, 1e-5], both | {"ROWS": rows, "BLOCK": block}

    def own_blocked(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), LONG_ROW, LONG_ROW, LONG_ROW, 1e-5], {"BLOCK": block}

    def own_resident(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), block, block, 4096, block, 1e-5], {"ROWS": rows, "BLOCK": block}

    def long(dtype: str, block: int) -> str:
        return f"rows of {LONG_ROW} columns in {dtype}, {block} columns a step"

    def whole(dtype: str, block: int) -> str:
        return f"rows of {block} columns in {dtype}, {rows} {'row' if rows == 1 else 'rows'} a program"

    return [
        Subject("resident", lambda: layer_norm_resident_kernel, resident, whole),
        Subject("blocked", lambda: layer_norm_blocked_kernel, blocked, long),
        Subject("yours, 06a", lambda: learners_kernel("06a"), own_blocked, long),
        Subject("yours, 06b", lambda: learners_kernel("06b"), own_resident, whole),
    ]


def _tensors(dtype: str) -> list[Pointer]:
    """x, y, w, b of ``dtype``; mean and rstd in fp32. All aligned, as fresh tensors are."""
    return [Pointer(dtype)] * 4 + [Pointer("fp32")] * 2


def learners_kernel(exercise_id: str) -> KernelSource:
    """The learner's kernel of an exercise, as the file is now.

    Raises: CourseError if the file is not there, cannot be read, or is still as the course wrote it.
    """
    exercise = catalog.get(exercise_id)
    try:
        text, _ = read_own_attempt(exercise)
    except NotAttempted as untouched:
        raise CourseError(f"{untouched} Do exercise {exercise.id} first, then come back.") from None
    except Unreadable as unreadable:
        raise CourseError(f"your file of exercise {exercise.id} cannot be read: {unreadable}") from None
    return KernelSource(text, exercise.entry_points[0], paths.shown(texts.find_file(exercise)))


# ---- words


def title(view: View) -> str:
    """The one message of the picture, from the reports themselves."""
    at = f"BLOCK {view.choice.block}"
    if view.chosen.refused:
        return f"The compiler gives no kernel for {_warps(view.choice.num_warps)}"
    known = [(column.num_warps, column.report) for column in view.columns if column.report is not None]
    if not known:
        return "The compiler is at work"
    spilling = [num_warps for num_warps, report in known if report.spill_bytes]
    (fewest, first), (most, last) = known[0], known[-1]
    if spilling and len(spilling) < len(known):
        free = [num_warps for num_warps, report in known if not report.spill_bytes]
        return f"{at} spills on {_list_warps(spilling)}, and not on {_list_warps(free)}"
    if spilling:
        return f"{at} spills on every number of warps tried"
    if fewest == most or first.registers <= last.registers:
        return f"{at} needs no spill: {(view.chosen.report or first).registers} registers a thread"
    return f"More warps, fewer registers: {first.registers} a thread on {_warps(fewest)}, {last.registers} on {most}"


def describe(view: View) -> str:
    """The caption: the chosen report in sentences."""
    choice, column = view.choice, view.chosen
    head = f"{choice.subject}, {view.words}, {_warps(choice.num_warps)}, {choice.arch}"
    if column.refused:
        return f"{head}. {' '.join(column.refused.split())}"
    report, held = column.report, column.residency
    if report is None or held is None:
        return f"{head}: compiling ..."
    spilled = f"{report.spill_bytes} bytes a thread are spilled" if report.spill_bytes else "nothing is spilled"
    words = [
        f"{head}: {report.registers} registers a thread, {spilled}, {report.shared_bytes} bytes of shared memory a program.",
        f"Loads from global memory move {bits(report.loads)} bits a thread, stores {bits(report.stores)}.",
        _occupancy(held),
    ]
    if not view.complete:
        words.append("The other columns are being compiled.")
    return " ".join(words)


def _occupancy(held: Residency) -> str:
    resident = f"{held.warps} of {held.most} warps of a multiprocessor are resident"
    if not held.warps:
        return f"No program fits a multiprocessor: {' and '.join(held.limited_by)} do not suffice."
    return (
        f"{resident}: every place is taken."
        if not held.limited_by
        else f"{resident}; the limit is {' and '.join(held.limited_by)}."
    )


def bits(widths: Mapping[int, int] | None) -> str:
    """Bytes a thread -> count, as "128" or "32 and 128"; a dash for none."""
    return " and ".join(str(8 * width) for width in widths or ()) or "-"


def _warps(count: int) -> str:
    return "1 warp" if count == 1 else f"{count} warps"


def _list_warps(counts: Sequence[int]) -> str:
    """ "1 and 2 warps", "4 to 32 warps"."""
    if len(counts) > 2:
        whole = [warps for warps in WARPS if counts[0] <= warps <= counts[-1]] == list(counts)
        shown = f"{counts[0]} to {counts[-1]}" if whole else f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
        return f"{shown} warps"
    return _warps(counts[0]) if len(counts) == 1 else f"{counts[0]} and {counts[1]} warps"


def code_of(column: Column, lines: Sequence[int]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """PTX and SASS that these source lines became, each as (line number, text) in the order of the listing."""
    if column.report is None:
        return [], []
    parts = [column.report.lines[line] for line in lines if line in column.report.lines]
    return (
        _number_lines(column.report.ptx, {number for part in parts for number in part.ptx}),
        _number_lines(column.report.sass or "", {number for part in parts for number in part.sass}),
    )


def _number_lines(listing: str, numbers: set[int]) -> list[tuple[int, str]]:
    texts = listing.splitlines()
    return [(number, texts[number - 1].split("//")[0].strip()) for number in sorted(numbers)]
