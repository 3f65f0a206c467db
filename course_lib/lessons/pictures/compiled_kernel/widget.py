"""Lesson 08: the compiler's report on a kernel, and the PTX and SASS of the source line that the
learner selects.

Every number comes from ``compile_report``. The page shows the compiled kernels without Python. A
button lets Python compile another kernel, BLOCK, dtype or GPU; its report stands beside the
previous one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.compiler import KernelSource, Pointer, source_text
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

_AS_GIVEN = "as given"
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
    controls = {
        "kernel": ipywidgets.Dropdown(
            options=[(_(label), label) for label in labels], value=kernel, description=_("kernel")
        ),
        **_common(BLOCKS, BLOCK, num_warps, arch),
        "dtype": ipywidgets.Dropdown(options=DTYPES, value=dtype, description="dtype"),
    }
    return _make(subjects, controls, num_warps)


def explore(
    kernel: Any,
    arguments: Mapping[str, Any] | Sequence[Any] | Callable[..., Any],
    constexprs: Mapping[str, Any] | None = None,
    *,
    block: str = "BLOCK",
    blocks: Sequence[int] | None = None,
    num_warps: int = 4,
    arch: str = "sm_90",
) -> AskingPicture:
    """Show the report of :func:`kernel_explorer` for any @triton.jit kernel, from a notebook cell
    or a file, or for a KernelSource.

    Args:
        arguments: as ``compile_report`` takes them: tensors, Pointer, numbers, in the kernel's
            order or by name. Or a function that returns them; it takes dtype and optionally the
            block size. With a function, dtype becomes a control.
        constexprs: the kernel's tl.constexpr arguments by name. ``block`` names the one that
            becomes a control; ``blocks`` are the values to choose from, by default a few powers of
            two around the given value.

    Raises: CourseError if an option is impossible or the compiler refuses the kernel; TypeError if
    ``kernel`` is not a kernel or an argument has another type.
    """
    constexprs = dict(constexprs or {})
    start_size = constexprs.get(block, 1)
    sizes = _list_sizes(start_size, blocks) if block in constexprs else (1,)
    _within(block, start_size, sizes)
    takes_block = callable(arguments) and len(inspect.signature(arguments).parameters) > 1

    def launch(dtype: str, size: int) -> tuple[Any, Mapping[str, Any]]:
        launch_arguments = (
            (arguments(dtype, size) if takes_block else arguments(dtype))
            if callable(arguments)
            else arguments
        )
        return launch_arguments, constexprs | ({block: size} if block in constexprs else {})

    def words(dtype: str, size: int) -> str:
        constants = list_words(f"{key} = {value}" for key, value in launch(dtype, size)[1].items())
        return _("; ").join(
            part for part in (_describe_dtypes(launch(dtype, size)[0]), constants) if part
        )

    name = (
        kernel.name
        if isinstance(kernel, KernelSource)
        else kernel.__name__
        if hasattr(kernel, "__name__")
        else ""
    )
    controls = _common(sizes, start_size, num_warps, arch, block)
    if callable(arguments):
        controls["dtype"] = ipywidgets.Dropdown(
            options=DTYPES, value=DTYPES[0], description="dtype"
        )
    return _make([Subject(name, lambda: kernel, launch, words)], controls, num_warps)


def _list_sizes(start_size: int, blocks: Sequence[int] | None) -> tuple[int, ...]:
    """Return the block sizes to choose from: ``blocks``, or powers of two around the first size."""
    if blocks:
        return tuple(blocks)
    around = (start_size // 4, start_size // 2, start_size * 2, start_size * 4)
    return tuple(sorted({start_size, *(size for size in around if size >= 16)}))


def _make(
    subjects: Sequence[Subject], controls: Mapping[str, Any], num_warps: int
) -> AskingPicture:
    by_name = {subject.label: subject for subject in subjects}
    compiled: dict[tuple[str, ...], dict[str, Any]] = {}  # cache of compiled sets
    shown_sets: list[dict[str, Any]] = []

    def compile_chosen(
        block: int, arch: str, dtype: str = _AS_GIVEN, kernel: str = subjects[0].label
    ) -> MovingPicture:
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


def _describe_dtypes(arguments: Mapping[str, Any] | Sequence[Any]) -> str:
    """Name the dtypes of the tensors among the arguments, each once: "tensors of fp16, fp32"."""
    values = arguments.values() if isinstance(arguments, Mapping) else arguments
    dtypes = [
        value.dtype if isinstance(value, Pointer) else str(value.dtype).split(".")[-1]
        for value in values
        if hasattr(value, "dtype")
    ]
    return (
        _("tensors of {dtypes}").format(dtypes=list_words(dict.fromkeys(dtypes))) if dtypes else ""
    )


def _common(
    blocks: Sequence[int], size: int, num_warps: int, arch: str, name: str = "BLOCK"
) -> dict[str, Any]:
    _within("num_warps", num_warps, WARPS)
    _within("arch", arch, tuple(ARCHS))
    return {
        "block": ipywidgets.Dropdown(
            options=list(blocks), value=size, description=name, disabled=len(blocks) < 2
        ),
        "arch": ipywidgets.Dropdown(
            options=[(words, key) for key, words in ARCHS.items()], value=arch, description="arch"
        ),
    }


def _within(name: str, value: Any, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        words = _("the explorer takes {name} from {known}; you asked for {value!r}.")
        raise CourseError(words.format(name=name, known=list_words(allowed), value=value))
