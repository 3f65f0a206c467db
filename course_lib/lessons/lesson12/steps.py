"""The steps of lesson 12: an order that loses two numbers, a lock, a barrier, and a flag that all
threads have to read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try, WrongForm

_PARTS = (1, 10, 100, 1000)
_ROWS = [[1, 2, 3, 4], [10, 20, 30, 40], [100, 200, 300, 400], [1000, 2000, 3000, 4000]]


def find_total(order: Sequence[int]) -> int:
    """Return the total after four programs have added 1, 10, 100 and 1000. In ``order`` each
    program appears twice: for its load and its store."""
    total = 0
    loaded: dict[int, int] = {}
    for program in order:
        if program in loaded:
            total = loaded[program] + _PARTS[program]
        else:
            loaded[program] = total
    return total


def _find_fault(order: Any) -> str:
    try:
        programs = [int(program) for program in order]
    except (TypeError, ValueError):
        raise WrongForm(
            _("`order` has to be a list of programs' numbers, such as [0, 0, 1, 1, 2, 2, 3, 3].")
        ) from None
    if sorted(programs) != [0, 0, 1, 1, 2, 2, 3, 3]:
        raise WrongForm(
            _(
                "each of the programs 0 to 3 has to appear twice, once for its load and once for"
                " its store; yours is {programs}."
            ).format(programs=programs)
        )
    total = find_total(programs)
    if total == 1010:
        return ""
    return _("this order leaves {total}, and 1010 is wanted.").format(total=total)


STEPS = (
    Step(
        "12-order",
        kind="value",
        entry_point="order",
        accepts=_find_fault,
        question="Who has to store last so that 1000 is in? And what must that program have "
                 "loaded so that 10 is in, too?",
        debrief="Programs 0 and 2 stored while another program held an old total, and its store "
                "wiped them out. You have made the race that a lock prevents.",
        slips=(
            Slip("[1, 1, 3, 0, 0, 2, 2, 3]", "[3, 0, 0, 1, 1, 2, 2, 3]"),
            Slip("[1, 1, 3, 0, 0, 2, 2, 3]", "[0, 2, 1, 3, 0, 2, 1, 3]"),
            Slip("[1, 1, 3, 0, 0, 2, 2, 3]", "[1, 1, 3, 3]"),
        ),
    ),
    Step(
        "12-take",
        kind="kernel",
        entry_point="locked_add_kernel",
        tries=(
            Try(
                "four programs bring 1, 10, 100 and 1000",
                arguments={"part_ptr": In(_PARTS), "total_ptr": Out((1,), start=0),
                    "lock_ptr": Out((1,), "int32", start=0)},
                grid=(4,),
                expected={"total_ptr": [1111], "lock_ptr": [0]},
                orders=6,
            ),
            Try(
                "one program alone",
                arguments={"part_ptr": In([5]), "total_ptr": Out((1,), start=2),
                    "lock_ptr": Out((1,), "int32", start=0)},
                expected={"total_ptr": [7], "lock_ptr": [0]},
            ),
        ),
        question="What does `tl.atomic_cas` return to a program that has just got the lock, and "
                 "what to one that has to wait?",
        debrief="Everything between the two is done by one program at a time. Nothing else in the "
                "kernel had to change.",
        slips=(
            Slip("while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass",
                "tl.atomic_cas(lock_ptr, 0, 1)", "a program goes on without the lock",
                "Two programs try at the same time, and one of them gets the lock. What does the "
                "other one do next?"),
            Slip("tl.atomic_cas(lock_ptr, 0, 1) == 1", "tl.atomic_cas(lock_ptr, 0, 1) == 0",
                "a program goes in while another one has the lock",
                "`tl.atomic_cas` returns what the lock held before. For which answer is the lock "
                "yours, and for which does your loop go on?"),
            Slip("tl.atomic_xchg(lock_ptr, 0)", "tl.atomic_xchg(lock_ptr, 1)"),
            Slip("tl.atomic_xchg(lock_ptr, 0)", "pass"),
        ),
    ),
    Step(
        "12-barrier",
        kind="kernel",
        entry_point="row_kernel",
        tries=(
            Try(
                "four rows of four columns",
                arguments={"part_ptr": In(_ROWS), "total_ptr": Out((4,), start=0),
                    "lock_ptr": Out((1,), "int32", start=0)},
                grid=(4,),
                constexprs={"BLOCK": 4},
                expected={"total_ptr": [1111, 2222, 3333, 4444], "lock_ptr": [0]},
                orders=6,
            ),
        ),
        question="What may another program do as soon as the lock holds 0? And which threads have "
                 "stored by then?",
        debrief="Store, meet, give back. The barrier costs next to nothing, and without it about "
                "99 of 100 runs were wrong on one GPU.",
        slips=(
            Slip("tl.debug_barrier()\n    tl.atomic_xchg(lock_ptr, 0)",
                "tl.atomic_xchg(lock_ptr, 0)"),
            Slip("tl.store(total_ptr + cols, total + part)\n    tl.debug_barrier()\n    "
                 "tl.atomic_xchg(lock_ptr, 0)",
                 "tl.debug_barrier()\n    tl.atomic_xchg(lock_ptr, 0)\n    tl.store(total_ptr + "
                 "cols, total + part)"),
        ),
    ),
    Step(
        "12-first",
        kind="kernel",
        entry_point="first_row_kernel",
        tries=(
            Try(
                "four rows of four columns, a buffer that held NaN",
                arguments={
                    "part_ptr": In(_ROWS), "total_ptr": Out((4,)),
                    "lock_ptr": Out((1,), "int32", start=0),
                    "flag_ptr": Out((1,), "int32", start=0),
                },
                grid=(4,),
                constexprs={"BLOCK": 4},
                expected={"total_ptr": [1111, 2222, 3333, 4444], "lock_ptr": [0], "flag_ptr": [1]},
                orders=6,
            ),
            Try(
                "one program: it is the first",
                arguments={
                    "part_ptr": In(_ROWS[:1]), "total_ptr": Out((4,)),
                    "lock_ptr": Out((1,), "int32", start=0),
                    "flag_ptr": Out((1,), "int32", start=0),
                },
                constexprs={"BLOCK": 4},
                expected={"total_ptr": [1, 2, 3, 4], "lock_ptr": [0], "flag_ptr": [1]},
            ),
        ),
        question="Who sets the flag, who asks for it, and who waits for whom?",
        debrief="One question, one answer for all threads. A barrier between your load and your "
                "store is right as well, and costs less.",
        slips=(
            Slip("tl.atomic_xchg(flag_ptr, 1)", "tl.load(flag_ptr)", "the flag never changes",
                "What does the second program find in the flag, and what should it find there?"),
            Slip("tl.atomic_xchg(flag_ptr, 1) == 1", "tl.atomic_xchg(flag_ptr, 1) == 0"),
            Slip("    if tl.atomic_xchg(flag_ptr, 1) == 1:",
                "    written = tl.load(flag_ptr)\n    tl.atomic_xchg(flag_ptr, 1)\n    if written "
                "== 1:"),
            Slip("    if tl.atomic_xchg(flag_ptr, 1) == 1:",
                "    written = tl.load(flag_ptr)\n    tl.store(flag_ptr, 1)\n    "
                "tl.debug_barrier()\n    if written == 1:"),
        ),
    ),
)  # fmt: skip
