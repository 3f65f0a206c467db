"""Look, once the verdict is known, for a case that a person can work out by hand and that fails as
a case of the check did.

The candidates run in one or two more processes, which are confined like that of the check, in CPU
mode. The same judge judges them. Their results do not change the verdict. A candidate only replaces
the case that the verdict shows, and only if it fails in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from course_lib.base.errors import EnvironmentFault
from course_lib.base.worker import WorkerFailure
from course_lib.catalog import Exercise
from course_lib.exercises import find_parts
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Part, Plan
from course_lib.grading.cases.small import list_small_cases
from course_lib.grading.execution import runner
from course_lib.grading.judging import diagnosis, wording
from course_lib.grading.judging.judge import Judged, forget_minor_fault, judge_case
from course_lib.grading.kind import find_mode
from course_lib.grading.submission.source import Kernels
from course_lib.launching.faults import FaultKind
from course_lib.sandbox.jobs import ResourceLimits

# Time limits per candidate and per process: long enough that a busy machine finds the same case,
# short enough that an endless loop costs little.
_CASE_SECONDS, _TOTAL_SECONDS = 3.0, 8.0
# candidates of the first process: one of them usually fails in the same way, and then the others
# need not run
_EASIEST = 4
# a number below this that is not 0 is left by eps or a rounding; a person cannot work it out
_TINY = 1e-6
_SAVED = ("mean", "rstd", "lse")
# the faults in memory that a smaller launch shows as well
_IN_MEMORY = (FaultKind.LOAD, FaultKind.STORE)


@dataclass(frozen=True)
class SmallCases:
    """The search for one submission: the ``kernels`` of ``exercise``, checked in ``mode`` within
    ``limits`` (None: those of the mode)."""

    kernels: Kernels
    exercise: Exercise
    mode: str
    limits: ResourceLimits | None

    def find(self, judged: list[Judged], failed: list[Judged], cause: str) -> Judged | None:
        """Find the easiest case that ``cause`` explains and that fails as the case does which would
        be shown otherwise.

        ``judged`` has the cases of the check, ``failed`` the wrong ones among them. Return None if
        there is no such case.
        """
        shown = wording.choose_shown(failed, cause)
        if not _can_be_smaller(shown):
            return None
        parts = find_parts(self.exercise)
        # A timed exercise asks about the sizes of its cases. A smaller case has another answer.
        if parts[shown.plan.entry_point].time is not None:
            return None
        ways = {_name_way(j) for j in wording.list_alike(failed, cause)}
        for candidate in self._run(parts[shown.plan.entry_point], shown.plan):
            if (
                candidate.passed
                or not candidate.ran
                or not _is_for_a_person(candidate)
                or _name_way(candidate) not in ways
                or wording.list_alike([candidate, shown], cause)[0] is not candidate
            ):
                continue
            if _tells_the_same(candidate, judged, failed, cause, parts):
                return candidate
        return None

    def _run(self, part: Part, shown: Plan) -> Iterator[Judged]:
        """Run the candidates and yield them judged, the easiest first. The field ``ran`` is False
        if one raises or does not finish."""
        plans = make_small_plans(part, shown.case, shown.entry_point)
        mode, limits = self.mode, self.limits
        if find_mode(mode).compiles:
            mode, limits = find_mode(mode).interpreted_by, None
        limits = limits or find_mode(mode).limits
        limits = replace(
            limits, case=min(limits.case, _CASE_SECONDS), total=min(limits.total, _TOTAL_SECONDS)
        )
        for batch in filter(None, (plans[:_EASIEST], plans[_EASIEST:])):
            try:
                run = runner.run(self.kernels, batch, mode, limits)
            except (EnvironmentFault, OSError, WorkerFailure):
                # the verdict is known without the candidates; the next check reports a fault of the
                # machine
                return
            for number, plan in enumerate(batch):
                judged = judge_case(plan, run.data.get(number), run.errors.get(number))
                forget_minor_fault(judged)
                yield judged
            if run.ended != "finished":
                return


@np.errstate(invalid="ignore")  # a row with an Inf computes Inf - Inf
def make_small_plans(part: Part, case: Case, entry_point: str) -> list[Plan]:
    """Make the plans of the candidates for ``case``. They check the outputs, and not the way in
    which a kernel computes them."""
    plans = []
    for small in list_small_cases(case, part.battery):
        rng = np.random.Generator(np.random.PCG64([0, zlib.crc32(small.name.encode())]))
        plan = part.planner(small, entry_point, rng)
        plan = replace(
            plan,
            interleavings=min(plan.interleavings, 1),
            reads={},
            spread={},
            calls={},
            alike=(),
            batch=None,
            empty_loads=None,
            meetings=None,
        )
        plans.append(plan)
    return plans


def _tells_the_same(
    candidate: Judged,
    judged: list[Judged],
    failed: list[Judged],
    cause: str,
    parts: dict[str, Part],
) -> bool:
    """Return whether the verdict stays the same with the candidate among the cases: its cause, or
    else what the wrong cases share."""
    with_it = [*judged, candidate]
    if cause != "wrong_values":
        return diagnosis.find_cause(with_it, parts) == cause
    shared = diagnosis.describe_shared_trait(judged, failed) if len(failed) > 1 else ""
    return not shared or diagnosis.describe_shared_trait(with_it, [*failed, candidate]) == shared


def _can_be_smaller(shown: Judged) -> bool:
    """Return whether the case has wrong numbers, or an access outside a tensor.

    What the learner's function returned for a size that the exercise asks for may be right to fail
    at a smaller size.
    """
    if shown.plan.case.describe_outcome(shown.plan.entry_point, shown.outputs):
        return False
    fault = shown.fault.kind if shown.fault else _IN_MEMORY[0]
    of_numbers = bool(
        shown.deviations or shown.outside or shown.fault
    ) and not shown.plan.constexprs.get("change")
    return of_numbers and fault in _IN_MEMORY and not shown.changes_input


def _name_way(judged: Judged) -> tuple:
    """Return the way in which a case fails: what it did to memory, and which outputs are wrong in
    which way."""
    fault = (judged.fault.kind, judged.fault.tensor, judged.fault.line) if judged.fault else ()
    return (
        fault,
        judged.changes_input,
        frozenset(judged.outside),
        tuple((d.output, d.kind) for d in judged.deviations),
    )


def _is_for_a_person(judged: Judged) -> bool:
    return has_whole_inputs(judged.plan) and all(
        d.want == 0 or not abs(d.want) < _TINY for d in judged.deviations[:1]
    )


def has_whole_inputs(plan: Plan) -> bool:
    """Return whether all inputs are whole numbers, NaN or Inf, except for the statistics that a
    forward pass saved.

    It is True if the plan supports ``Case.by_hand``.
    """
    given = [t.values for t in plan.tensors if t.values is not None and t.name not in _SAVED]
    finite = [values.astype(np.float64)[np.isfinite(values.astype(np.float64))] for values in given]
    return all((values == np.round(values)).all() for values in finite)
