"""Lesson 08: the compiler's report on a kernel, and the PTX and SASS of the source line that the
learner selects.

Every number comes from ``compile_report``. The page shows the compiled kernels without Python. A
button lets Python compile another kernel, BLOCK, dtype or GPU; its report stands beside the
previous one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.compiler import KernelSource, source_text
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.compiled_kernel.model import (
    ARCHS,
    BLOCKS,
    DTYPES,
    WARPS,
    Subject,
    compile_set,
    family,
)

_KEPT = 2  # compiled kernels that the page carries; each takes about 50 kB


def kernel_explorer(
    kernel: str = "resident",
    BLOCK: int = 8192,
    num_warps: int = 4,
    dtype: str = "fp16",
    arch: str = "sm_90",
    rows: int = 1,
) -> AskingPicture:
    """Show the compiler's report on a LayerNorm forward kernel for 1 to 32 warps, and the code of
    the line you select.

    Args:
        kernel: "resident" or "blocked", the course's own; "yours, 07a" or "yours, 08a", the
            exercise files as they are now. BLOCK: 128 to 8192. The resident kernels get rows of
            BLOCK columns, the blocked ones rows of 8192.
        num_warps: 1, 2, 4, 8, 16 or 32: the column that is selected at the start.
        dtype: fp16, bf16 or fp32, of x, y, w and b.
        arch: sm_80, sm_90, sm_100 or sm_120. The machine does not need such a GPU.
        rows: ROWS of the resident kernels.

    Raises: CourseError if an argument has another value, or the kernel cannot be read or compiled.
    """
    subjects = family(rows)
    labels = [subject.label for subject in subjects]
    _within("kernel", kernel, labels)
    _within("dtype", dtype, DTYPES)
    _within("BLOCK", BLOCK, BLOCKS)
    _within("num_warps", num_warps, WARPS)
    _within("arch", arch, tuple(ARCHS))
    controls = {
        "kernel": ipywidgets.Dropdown(
            options=[(_(label), label) for label in labels], value=kernel, description=_("kernel")
        ),
        "block": ipywidgets.Dropdown(options=BLOCKS, value=BLOCK, description="BLOCK"),
        "arch": ipywidgets.Dropdown(
            options=[(words, key) for key, words in ARCHS.items()], value=arch, description="arch"
        ),
        "dtype": ipywidgets.Dropdown(options=DTYPES, value=dtype, description="dtype"),
    }
    return _make(subjects, controls, num_warps)


def _make(
    subjects: Sequence[Subject], controls: Mapping[str, Any], num_warps: int
) -> AskingPicture:
    by_name = {subject.label: subject for subject in subjects}
    compiled: dict[tuple[str, ...], dict[str, Any]] = {}  # cache of compiled sets
    shown_sets: list[dict[str, Any]] = []

    def compile_chosen(kernel: str, block: int, arch: str, dtype: str) -> MovingPicture:
        subject = by_name[kernel]
        source = subject.kernel()
        text = source.text if isinstance(source, KernelSource) else source_text(source).text
        key = (kernel, dtype, str(block), arch, text)
        compiled_set = compiled.get(key) or compile_set(subject, dtype, block, arch)
        # a crash or timeout may not happen again: not cached
        if not any("refused" in column for column in compiled_set["columns"]):
            compiled[key] = compiled_set
        shown_sets[:] = [
            *[other_set for other_set in shown_sets if other_set is not compiled_set],
            compiled_set,
        ][-_KEPT:]
        data = {"sets": shown_sets, "chosen": len(shown_sets) - 1, "warps": num_warps}
        return MovingPicture("compiled_kernel", data, _describe(compiled_set))

    return AskingPicture(compile_chosen, controls, _("Compile it"))


def _describe(compiled_set: Mapping[str, Any]) -> str:
    columns = _("; ").join(
        (
            _("{warps}: refused").format(warps=column["warps"])
            if "refused" in column
            else _("{warps}: {registers} registers, {spill} bytes spilled").format_map(column)
        )
        for column in compiled_set["columns"]
    )
    words = _(
        "{kernel}, {words}, {arch}. For 1 to 32 warps a bar of registers per thread, a hatched bar"
        " of spilled bytes: {columns}. Beside it the kernel's lines, with the PTX and SASS that"
        " each became."
    )
    return words.format(
        kernel=compiled_set["kernel"],
        words=compiled_set["words"],
        arch=compiled_set["arch"],
        columns=columns,
    )


def _within(name: str, value: Any, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        words = _("the explorer takes {name} from {known}; you asked for {value!r}.")
        raise CourseError(words.format(name=name, known=list_words(allowed), value=value))
