"""Make the plans of an exercise out of its cases."""

from __future__ import annotations

import hashlib
import math
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise
from course_lib.exercises import find_parts
from course_lib.grading.cases.buffers import HAS_BF16
from course_lib.grading.cases.hidden import Secret, draw_hidden_case
from course_lib.grading.cases.plan import Plan

# fills whose numbers do not depend on a seed
_FIXED = frozenset({"worked", "constant", "both empty"})
_SMALL = 4096  # the most elements of a case that is run a second time
_FEW = 32  # the most blocks of such a case
# the most programs of a launch that is interleaved though its programs share no memory
_FEW_PROGRAMS = 8
_TELLING_PROGRAMS = 5
_MANY = 100  # with at least so many programs, only some are run


@np.errstate(invalid="ignore")  # a row with an Inf computes Inf - Inf
def make_plans(exercise: Exercise, seed: int = 0, secret: Secret | None = None) -> list[Plan]:
    """Make the plans of every entry point, in order. The same seed, or secret and seed, gives the
    same bytes on every machine."""
    made = []
    for entry_point, part in find_parts(exercise).items():
        plans = []
        for case in part.battery:
            if secret is None:
                rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(case.name.encode())]))
                plans.append(part.planner(case, entry_point, rng))
            else:
                purpose = f"{exercise.id} {entry_point} {case.name}"
                drawn = draw_hidden_case(case, secret.generator(f"shape: {purpose}"))
                plans.append(
                    part.planner(drawn, entry_point, secret.generator(f"values: {purpose}: {seed}"))
                )
        made += _ask_for_sharing_where_it_tells(
            [_sample_programs(plan) for plan in plans if _is_possible(plan)]
        )
    return made


def describe_left_out(exercise: Exercise, plans: Sequence[Plan]) -> str:
    """Return a sentence about the cases that this machine cannot run and :func:`make_plans` leaves
    out; "" if there are none."""
    count = sum(len(part.battery) for part in find_parts(exercise).values()) - len(plans)
    if not count:
        return ""
    lacks = _("32-bit addresses") if HAS_BF16 else _("32-bit addresses and no bf16")
    words = _("{count} more cases are checked only outside of this browser tab, which has {lacks}.")
    words = (
        _("{count} more case is checked only outside of this browser tab, which has {lacks}.")
        if count == 1
        else words
    )
    return words.format(count=count, lacks=lacks)


def _is_possible(plan: Plan) -> bool:
    """Return False for rows more than 2^30 elements apart where addresses have 32 bits, and for
    bf16 where there is none."""
    return (sys.maxsize > 2**32 or not plan.case.is_far) and (
        HAS_BF16 or all(t.dtype != "bf16" for t in plan.tensors)
    )


def _sample_programs(plan: Plan) -> Plan:
    """Run only some of many programs that do the same for other rows: some at both ends, and some
    after number 16, 64 and 128."""
    case = plan.case
    count = -(-case.M // case.rows)
    outputs = [tensor for tensor in plan.tensors if tensor.is_output]
    if (
        count < _MANY
        or plan.sample
        or plan.grid != (count,)
        or plan.interleavings
        or any(t.shape[0] != case.M for t in outputs)
    ):
        return plan
    from_start = [at + i for at in (0, 16, 64, 128) for i in (0, 1) if at + i < count]
    return replace(
        plan,
        sample=tuple(sorted({*from_start, *(count - 1 - program for program in from_start)})),
        spread={},
    )


def _ask_for_sharing_where_it_tells(plans: list[Plan]) -> list[Plan]:
    """Ask only the plans with the most programs for shared work.

    With few programs, a right kernel may give several parts to each program, and so all of them to
    one.
    """
    most = [max(plan.spread.values(), default=0) for plan in plans]
    enough = min(max(most), _TELLING_PROGRAMS)
    return [
        plan if number >= enough else replace(plan, spread={})
        for plan, number in zip(plans, most, strict=True)
    ]


@np.errstate(invalid="ignore")
def make_second_plans(
    exercise: Exercise, plans: Sequence[Plan], choice: bytes, numbers: bytes
) -> list[Plan]:
    """Repeat one case of each entry point in the same shape, with other numbers, other addresses,
    and other values left in the outputs.

    The programs of a kernel are interleaved, also where none of them needs what another one
    stores: only so it shows that two programs touch the same elements, or two threads of one.
    A function that gets sizes and no numbers gets other sizes.

    ``choice`` draws the cases. ``numbers`` draws all the rest, and the learner's code must not be
    able to know it. The same ``choice`` and ``numbers`` give the same bytes on every machine.
    """
    chooser, rng = (
        np.random.Generator(np.random.PCG64(list(hashlib.sha256(key).digest())))
        for key in (choice, numbers)
    )
    made = []
    for entry_point, part in find_parts(exercise).items():
        candidates = [plan for plan in plans if plan.entry_point == entry_point]
        cheap = [plan for plan in candidates if _is_worth_repeating(plan)] or candidates
        cheap = [plan for plan in cheap if _has_some_programs(plan)] or cheap
        chosen = cheap[int(chooser.integers(len(cheap)))]
        why = _("{why}; a second run, other numbers").format(why=chosen.case.describe_why())
        case = replace(chosen.case, name=f"{chosen.case.name}, again", why=why)
        plan = part.planner(case, entry_point, rng)
        if plan.arguments == chosen.arguments and all(
            tensor.values is None for tensor in plan.tensors
        ):
            why = _("`{function}`; a second run, other sizes").format(function=entry_point)
            drawn = replace(draw_hidden_case(case, rng), why=why)
            plan = part.planner(drawn, entry_point, rng)
        tensors = tuple(tensor if tensor.far else tensor.place_anew(rng) for tensor in plan.tensors)
        interleavings = int(plan.interleavings > 0 or _has_some_programs(plan))
        made.append(replace(plan, tensors=tensors, interleavings=interleavings))
    return made


def _has_some_programs(plan: Plan) -> bool:
    return 1 < math.prod(plan.grid) <= _FEW_PROGRAMS


def _is_worth_repeating(plan: Plan) -> bool:
    case = plan.case
    steps = math.prod(plan.grid) * (-(-case.N // case.block) if case.block else 1)
    return (
        case.M > 0
        and not case.is_far
        and case.fill not in _FIXED
        and case.M * case.N <= _SMALL
        and steps <= _FEW
    )
