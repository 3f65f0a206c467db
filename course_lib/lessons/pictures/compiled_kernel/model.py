"""The data of the compiled-kernel explorer: kernels, their launches, and the compiler's reports on
them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import texts
from course_lib.compiler import (
    CompileError,
    CompileReport,
    KernelSource,
    Pointer,
    compile_report,
    residency,
    source_text,
)
from course_lib.grading.public import NotAttempted, Unreadable, read_own_attempt
from course_lib.lessons.kit.code import list_code
from course_lib.lessons.own_launch import list_tensors, order_arguments

WARPS = (1, 2, 4, 8, 16, 32)
ARCHS = {
    "sm_80": "sm_80 (A100)",
    "sm_90": "sm_90 (H100)",
    "sm_100": "sm_100 (B200)",
    "sm_120": "sm_120 (RTX 50)",
}
DTYPES = ("fp16", "bf16", "fp32")
BLOCKS = (128, 256, 512, 1024, 2048, 4096, 8192)
LONG_ROW = 8192  # columns of the blocked kernel's row, for any BLOCK
LIMIT = 30.0  # time limit of one report in seconds
SHOWN = 5  # instructions per source line that the page carries
KINDS = 8  # kinds of instructions per source line that the page carries
_TIDY = re.compile(r"\s+")


@dataclass(frozen=True)
class Subject:
    """A kernel to explore.

    ``kernel`` returns the @triton.jit function or the KernelSource; it is called before each
    compilation, because a file may have changed. ``launch`` takes dtype and BLOCK and returns
    arguments and constexprs; ``words`` takes the same and describes them.
    """

    label: str
    kernel: Callable[[], Any]
    launch: Callable[[str, int], tuple[Any, Mapping[str, Any]]]
    words: Callable[[str, int], str]


def compile_set(subject: Subject, dtype: str, block: int, arch: str) -> dict[str, Any]:
    """Compile one kernel with one BLOCK for each number of warps, and return the data for
    ``picture.js``. Each compilation takes seconds.

    There is one column per number of warps. It has the compiler's report and, by source line, its
    PTX and SASS: the number of instructions, the number of each kind, and the first few. If the
    compiler refuses a number of warps, the column has its message.

    Raises: CourseError if the kernel cannot be read, or the compiler refuses it for every number of
    warps.
    """
    kernel = subject.kernel()
    source = source_text(kernel)
    arguments, constexprs = subject.launch(dtype, block)
    columns, refused = [], None
    for warps in WARPS:
        try:
            report = compile_report(
                kernel, arguments, constexprs, num_warps=warps, arch=arch, limit=LIMIT
            )
        except CompileError as problem:
            refused = problem
            columns.append({"warps": warps, "refused": " ".join(str(problem).split())})
        else:
            columns.append(describe_report(report, warps))
    if refused is not None and all("refused" in column for column in columns):
        raise refused
    lines = dict(enumerate(source.text.split("\n"), source.first_line))
    return {
        "kernel": _(subject.label), "function": source.name, "words": subject.words(dtype, block),
        "block": block, "dtype": dtype, "arch": arch,
        "source": list_code(lines, _find_body(source)), "columns": columns,
    }  # fmt: skip


def describe_report(report: CompileReport, warps: int) -> dict[str, Any]:
    """Return a report as a column of the picture. Loads and stores are counted by bits per thread;
    None without a disassembly."""
    held = residency(report.arch, report.registers, report.shared_bytes, warps)
    ptx, sass = report.ptx.splitlines(), (report.sass or "").splitlines()
    return {
        "warps": warps, "registers": report.registers, "spill": report.spill_bytes,
        "shared": report.shared_bytes,
        "loads": _count_bits(report.loads), "stores": _count_bits(report.stores),
        "resident": held.warps, "most": held.most, "limited": held.limited_by,
        "code": {line: [_shorten(ptx, part.ptx), _shorten(sass, part.sass)] for line,
            part in report.lines.items()},
    }  # fmt: skip


def _count_bits(widths: Mapping[int, int] | None) -> list[tuple[int, int]] | None:
    return None if widths is None else [(8 * width, count) for width, count in widths.items()]


def _shorten(
    listing: Sequence[str], numbers: Sequence[int]
) -> tuple[int, list[tuple[str, int]], list[str]]:
    """Return the number of instructions, the number of each kind, and the first SHOWN
    instructions."""
    code = [
        _TIDY.sub(" ", listing[number - 1].split("//")[0]).strip(" ;") for number in sorted(numbers)
    ]
    kinds = Counter(_find_kind(line) for line in code)
    return len(code), kinds.most_common(KINDS), code[:SHOWN]


def _find_kind(instruction: str) -> str:
    """Return an instruction's name with its types, without its predicate and its operands."""
    words = [word for word in instruction.split() if not word.startswith("@")]
    return words[0] if words else instruction


def _find_body(source: KernelSource) -> range:
    """Return the line numbers of the function's body."""
    for node in ast.walk(ast.parse(textwrap.dedent(source.text))):
        if isinstance(node, ast.FunctionDef) and node.name == source.name:
            return range(
                node.body[0].lineno + source.first_line - 1,
                (node.end_lineno or 0) + source.first_line,
            )
    raise CourseError(
        _("{file} has no function `{name}`.").format(file=source.file, name=source.name)
    )


# ---- the kernels of the course, and the learner's


def family(rows: int = 1) -> list[Subject]:
    """Return LayerNorm forward kernels: the course's blocked and resident one, and the learner's
    two, on packed rows with w and b."""
    from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

    flags = {"HAS_W": True, "HAS_B": True}

    def blocked(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), LONG_ROW, 1, LONG_ROW, 1, LONG_ROW, 1e-5], flags | {
            "BLOCK": block
        }

    def resident(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return [*_tensors(dtype), block, 1, block, 1, 4096, block, 1e-5], flags | {
            "ROWS": rows,
            "BLOCK": block,
        }

    def own_blocked(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return order_arguments("07a", 1, LONG_ROW, make_pointers("07a", dtype) | {"BLOCK": block})

    def own_resident(dtype: str, block: int) -> tuple[list[Any], dict[str, Any]]:
        return order_arguments(
            "08a", 4096, block, make_pointers("08a", dtype) | {"ROWS": rows, "BLOCK": block}
        )

    def long(dtype: str, block: int) -> str:
        return _("rows of {columns} columns in {dtype}, {block} columns per step").format(
            columns=LONG_ROW, dtype=dtype, block=block
        )

    def whole(dtype: str, block: int) -> str:
        if rows == 1:
            return _("rows of {columns} columns in {dtype}, 1 row per program").format(
                columns=block, dtype=dtype
            )
        return _("rows of {columns} columns in {dtype}, {rows} rows per program").format(
            columns=block, dtype=dtype, rows=rows
        )

    return [
        Subject(N_("resident"), lambda: layer_norm_resident_kernel, resident, whole),
        Subject(N_("blocked"), lambda: layer_norm_blocked_kernel, blocked, long),
        Subject(N_("yours, 07a"), lambda: learners_kernel("07a"), own_blocked, long),
        Subject(N_("yours, 08a"), lambda: learners_kernel("08a"), own_resident, whole),
    ]


def make_pointers(exercise_id: str, dtype: str) -> dict[str, Pointer]:
    """Return the tensors of an exercise's kernel for the compiler: fp32 for rows and partial sums,
    ``dtype`` for the others."""
    return {
        name: Pointer("fp32" if kind in ("row", "partial") else dtype)
        for name, kind in list_tensors(exercise_id).items()
    }


def _tensors(dtype: str) -> list[Pointer]:
    """Return x, y, w, b of ``dtype``, and mean and rstd in fp32, all aligned like freshly allocated
    tensors."""
    return [Pointer(dtype)] * 4 + [Pointer("fp32")] * 2


@cache
def compile_forward(
    kernel: str = "resident",
    *,
    N: int = LONG_ROW,
    stride: int = 0,
    num_warps: int = 4,
    aligned: bool = True,
) -> CompileReport:
    """Compile the course's blocked or resident kernel for an H100: fp16, with w and b, one row per
    program, BLOCK = 8192.

    Reports are cached for the process.

    Args:
        kernel: "resident" or "blocked".
        N: columns, up to 8192.
        stride: elements between rows; 0 is N, packed.
        aligned: whether the tensors begin at a multiple of 16 bytes.

    Raises: CourseError if the compiler refuses it.
    """
    from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

    x, row, between = Pointer("fp16", aligned), Pointer("fp32"), stride or N
    shape = (between, 1, between, 1) + ((4096, N) if kernel == "resident" else (N,))
    constexprs = {"HAS_W": True, "HAS_B": True, "BLOCK": LONG_ROW} | (
        {"ROWS": 1} if kernel == "resident" else {}
    )
    function = layer_norm_resident_kernel if kernel == "resident" else layer_norm_blocked_kernel
    return compile_report(
        function, [x, x, x, x, row, row, *shape, 1e-5], constexprs, num_warps=num_warps
    )


def learners_kernel(exercise_id: str) -> KernelSource:
    """Read the learner's kernel of an exercise from the file.

    Raises: CourseError if the file is not there, cannot be read, or is still as the course wrote
    it.
    """
    exercise = catalog.get(exercise_id)
    try:
        text = read_own_attempt(exercise)[0]
    except NotAttempted as untouched:
        words = _("{problem} Do exercise {exercise} first, then come back.")
        raise CourseError(words.format(problem=untouched, exercise=exercise.id)) from None
    except Unreadable as unreadable:
        words = _("your file of exercise {exercise} cannot be read: {problem}")
        raise CourseError(words.format(exercise=exercise.id, problem=unreadable)) from None
    return KernelSource(text, exercise.entry_points[0], paths.shown(texts.find_file(exercise)))
