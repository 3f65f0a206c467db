"""Count what a learner's kernel does, beside the course's count and the lowest possible one.

A count is shown whether the check passes or fails, so that an edit is seen to change it. It decides
nothing: what an exercise limits stands in its plans, and is found where the kernel runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise
from course_lib.compiler import CompileReport, Specialisation
from course_lib.exercises import find_parts
from course_lib.grading.cases.counts import Count, Quantity
from course_lib.grading.cases.plan import Part, Plan
from course_lib.grading.execution.watch import MEETINGS, MOVED, name_reads
from course_lib.grading.verdict import KernelCount

# the name of each quantity, and what it is counted for
_NAMES = {
    Quantity.READS: (N_("reads of {tensor}"), N_("per element")),
    Quantity.MEETINGS: (N_("meetings of the lanes"), N_("per row")),
    Quantity.MOVED: (N_("bytes moved"), N_("per element of the matrix")),
    Quantity.REGISTERS: (N_("registers"), N_("per thread")),
    Quantity.SPILLED: (N_("spilled bytes"), N_("per thread")),
    Quantity.LOADS: (N_("load instructions"), N_("per thread")),
}


def mark_counted(exercise: Exercise, plans: list[Plan]) -> list[Plan]:
    """Return the plans; those of the cases in which the exercise counts ask the child to count."""
    cases = {(entry_point, part.counted_case) for entry_point, part in find_parts(exercise).items()}
    return [
        replace(plan, counted=True) if (plan.entry_point, plan.case.name) in cases else plan
        for plan in plans
    ]


def list_compiled(exercise: Exercise) -> dict[str, Specialisation]:
    """Return by entry point the launch for which the exercise asks the compiler's report."""
    return {
        entry_point: replace(part.compiled, kernel=entry_point)
        for entry_point, part in find_parts(exercise).items()
        if part.compiled is not None
    }


def list_counts(
    exercise: Exercise,
    plans: list[Plan],
    counted: Mapping[int, Mapping[str, int]],
    compiled: Mapping[str, CompileReport | None],
) -> tuple[KernelCount, ...]:
    """Return every count of the exercise.

    ``yours`` is None where nothing was counted: the code was not run, or did not come to the end of
    the case, or this machine has no compiler.

    Args:
        counted: what the child counted, by the number of the plan.
        compiled: the compiler's reports by entry point.
    """
    counts: list[KernelCount] = []
    for entry_point, part in find_parts(exercise).items():
        in_case: Mapping[str, int] = {}
        plan = None
        for number, marked in enumerate(plans):
            if marked.counted and marked.entry_point == entry_point:
                in_case, plan = counted.get(number, {}), marked
        report = compiled.get(entry_point)
        for count in part.counts:
            yours = None
            if count.quantity.is_compiled and report is not None:
                yours = _FROM_REPORT[count.quantity](report)
            elif not count.quantity.is_compiled and plan is not None and in_case:
                yours = _count_in_case(count, plan, in_case)
            name, unit = _NAMES[count.quantity]
            counts.append(
                KernelCount(
                    name=_(name).format(tensor=count.tensor),
                    unit=_(unit),
                    yours=yours,
                    course=count.course,
                    least=count.least,
                    limit=plan and _find_limit(count, plan),
                    place=_describe_place(count, part, plan),
                )
            )
    return tuple(counts)


def list_uncounted(exercise: Exercise) -> tuple[KernelCount, ...]:
    """Return the counts of the exercise before anything of the learner was run."""
    plans = []
    for entry_point, part in find_parts(exercise).items():
        rng = np.random.Generator(np.random.PCG64(0))
        plans += [
            part.planner(case, entry_point, rng)
            for case in part.battery
            if case.name == part.counted_case
        ]
    return list_counts(exercise, mark_counted(exercise, plans), {}, {})


def _count_in_case(count: Count, plan: Plan, counted: Mapping[str, int]) -> float:
    match count.quantity:
        case Quantity.READS:
            read = counted.get(name_reads(count.tensor), 0)
            return read / math.prod(plan.tensor(count.tensor).shape)
        case Quantity.MEETINGS:
            return counted.get(MEETINGS, 0) / plan.case.M
        case _:
            return counted.get(MOVED, 0) / (plan.case.M * plan.case.N)


_FROM_REPORT: dict[Quantity, Callable[[CompileReport], float]] = {
    Quantity.REGISTERS: lambda report: report.registers,
    Quantity.SPILLED: lambda report: report.spill_bytes,
    Quantity.LOADS: lambda report: sum((report.loads or {}).values()),
}


def _find_limit(count: Count, plan: Plan) -> float | None:
    """Return the most that the exercise allows; None if it sets no limit."""
    if count.quantity is Quantity.READS:
        return plan.reads.get(count.tensor)
    return plan.meetings if count.quantity is Quantity.MEETINGS else None


def _describe_place(count: Count, part: Part, plan: Plan | None) -> str:
    """Say in which case, or for which launch, it is counted."""
    if not count.quantity.is_compiled:
        return _("for {shape}").format(shape=plan.case.describe_shape()) if plan else ""
    assert part.compiled is not None
    constants = [f"{name} = {value}" for name, value in part.compiled.constexprs.items()]
    words = _("in the code for an H100, {constants}, {warps} warps")
    return words.format(constants=_(", ").join(constants), warps=part.compiled.num_warps)
