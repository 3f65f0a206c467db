"""Lessons 07 and 11: the memory accesses of any kernel, lane by lane. Which program asks for which
address, and how often?"""

from __future__ import annotations

from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.access_map.model import make_data, model
from course_lib.lessons.pictures.access_map.run import record


def access_map(
    kernel: Any, grid: Any, *arguments: Any, **named: Any
) -> MovingPicture | AskingPicture:
    """Run ``kernel[grid](*arguments, **named)`` once in the interpreter, on copies, and show its
    accesses.

    Args:
        kernel: a @triton.jit function, of the course or your own, or a KernelSource. Or a function
            that returns one, such as
            ``lambda: learners_kernel("07a")``: then a button reads the file again and runs the
                kernel.
        grid: 1 to 3 sizes, up to 1024 programs, or a function that computes them from a dict of the
            arguments.
        arguments, named: as in the launch: CPU or GPU tensors, numbers, tl.constexpr values. The
            map names a tensor after its parameter, without ``_ptr``. If two tensors share memory,
            the name of the first stands for both.

    A kernel that raises, or accesses memory outside its tensors, is stopped there: the map shows
    the accesses before, and the reason.

    Raises: CourseError if the launch does not fit the kernel or is too large; TypeError if
    ``kernel`` is not a kernel.
    """
    if callable(kernel) and not hasattr(kernel, "fn"):
        return AskingPicture(
            lambda: _trace(kernel(), grid, arguments, named), {}, _("Run it as it is now")
        )
    return _trace(kernel, grid, arguments, named)


def _trace(kernel: Any, grid: Any, arguments: Any, named: Any) -> MovingPicture:
    data = make_data(model(record(kernel, grid, arguments, named)))
    over = _(", ").join(
        tensor["name"] + " " + _count_visits(times, verb)
        for tensor in data["tensors"]
        for verb, times in tensor["times"].items()
        if times
    )
    alt = _(
        "The memory accesses of {kernel}, grid {grid}: a row for each program, the addresses of"
        " each tensor side by side, a hatched strip for each sweep; above, the lanes of one"
        " operation and the elements that they reach. Sweeps over each tensor: {over}. {fault}"
    ).format(
        kernel=data["kernel"],
        grid=" x ".join(map(str, data["grid"])),
        over=over or _("none"),
        fault=data["fault"],
    )
    return MovingPicture("access_map", data, alt.strip())


def _count_visits(times: float, verb: str) -> str:
    words = {
        "read": _("{times} read") if times == 1 else _("{times} reads"),
        "write": _("{times} write") if times == 1 else _("{times} writes"),
        "atomic": _("{times} atomic operation") if times == 1 else _("{times} atomic operations"),
    }
    return words[verb].format(times=f"{times:g}")
