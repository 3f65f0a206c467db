"""Run the code of one submission, as often as a check needs it, and judge the outputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from course_lib.base import background
from course_lib.base.errors import EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.cases.plan import Plan
from course_lib.grading.execution import child, runner
from course_lib.grading.execution.runner import ResourceLimits, Run
from course_lib.grading.judging import wording
from course_lib.grading.judging.compiled import Compilation
from course_lib.grading.judging.judge import Judged, judge, judge_case
from course_lib.grading.kind import find_mode
from course_lib.grading.submission.source import Kernels
from course_lib.grading.withheld import withhold
from course_lib.launching.faults import FaultKind
from course_lib.sandbox import jobs

_REST_SECONDS = 2.0  # time limit per case for the cases after one that was stopped


@dataclass(frozen=True)
class Running:
    """One submission in ``mode``, within ``limits`` (None: those of the mode).

    If the cases are hidden, ``hidden_lines`` is the number of lines of the submitted file, and the
    words of its code are withheld. Otherwise it is None.
    """

    kernels: Kernels
    mode: str
    limits: ResourceLimits | None = None
    hidden_lines: int | None = None

    def run(
        self,
        plans: list[Plan],
        *,
        mode: str | None = None,
        limits: ResourceLimits | None = None,
        take: Callable[[int, bytes], None] | None = None,
        is_over: Callable[[], bool] | None = None,
    ) -> Run:
        """Run the plans in ``mode``, which defaults to the mode of the submission.

        ``limits`` default to those of the submission in its own mode, and to those of ``mode`` in
        another mode.

        Raises: EnvironmentFault if this machine starts no process; otherwise as
        :func:`course_lib.grading.execution.runner.run`.
        """
        mode = mode or self.mode
        limits = limits or (self.limits if mode == self.mode else None)
        run = runner.run(self.kernels, plans, mode, limits, take, is_over)
        if self.hidden_lines is not None:
            run = withhold(run, plans, self.hidden_lines)
            if run.import_error and run.import_error.type == child.REFUSED:
                # without cases, the refusal cannot hold an input's values
                run = runner.run(self.kernels, [], mode, limits)
        if run.ended == "not started" and run.import_error is None:
            raise describe_not_started(run)
        return run

    def judge_all(
        self, plans: list[Plan], take: Callable[[int, bytes], None] | None = None
    ) -> tuple[Run, list[Judged], str]:
        """Run and judge every plan. In GPU mode the interpreter runs them as well: it sees faults
        that a compiled kernel does not show.

        Returns: the run, the judged cases, and a sentence about what the interpreter could not
        check, or "".
        """
        if find_mode(self.mode).compiles:
            return self._judge_on_gpu([replace(plan, sample=()) for plan in plans], take)
        run = self._run_to_the_end(plans, take)
        judged = judge_run(plans, run)
        self._judge_samples(judged)
        forget_unwritten(judged)
        return run, judged, ""

    def _judge_on_gpu(
        self, plans: list[Plan], take: Callable[[int, bytes], None] | None
    ) -> tuple[Run, list[Judged], str]:
        interpreter = find_mode(self.mode).interpreted_by
        interpreting = background.start(lambda: self.run(plans, mode=interpreter))
        run = self._run_to_the_end(plans, take, lambda: _found_a_deadlock(interpreting))
        judged = judge_run(plans, run)
        # If the GPU cannot allocate rows 2^30 elements apart, the interpreter's result decides. The
        # child's own report is not evidence.
        unplaced = {
            n
            for n, j in enumerate(judged)
            if j.raised and j.raised.type == "Unplaceable" and j.plan.case.is_far
        }
        for n in unplaced:
            judged[n].raised = None
        unchecked = ""
        # a run on a GPU does not report a race, and its outputs often do not show it
        shared = any(plan.interleavings for plan in plans)
        if (
            shared
            or run.case is not None
            or all(j.passed or not (j.ran or j.raised) for j in judged)
        ):
            interpreted = interpreting.result()
            for n in unplaced & interpreted.data.keys():
                judged[n] = judge(plans[n], interpreted.data[n])
            unchecked = _add_faults(judged, interpreted)
        if any(plan.counted for plan in plans):
            run.counts = interpreting.result().counts
        forget_unwritten(judged)
        return run, judged, unchecked

    def _run_to_the_end(
        self,
        plans: list[Plan],
        take: Callable[[int, bytes], None] | None,
        is_over: Callable[[], bool] | None = None,
    ) -> Run:
        """Run the plans. If the time limit stopped one and the earlier ones are right, run the
        later ones for a short time.

        A loop that goes too far may time out in the case with the most steps and give wrong values,
        which name the cause, in another.
        """
        run = self.run(plans, take=take, is_over=is_over)
        if run.ended != "timed out" or run.case is None or (is_over and is_over()):
            return run
        if not all(judge(plans[number], data).right for number, data in run.data.items()):
            return run
        start, limits = run.case + 1, self.limits or find_mode(self.mode).limits
        short = replace(
            limits, case=min(limits.case, _REST_SECONDS), total=min(limits.total, 4 * _REST_SECONDS)
        )
        rest = self.run(plans[start:], limits=short)
        run.data |= {start + number: data for number, data in rest.data.items()}
        run.errors |= {start + number: error for number, error in rest.errors.items()}
        return run

    def _judge_samples(self, judged: list[Judged]) -> None:
        """Run and judge all programs of the wrong cases, if each of these ran only a sample of its
        programs.

        A right kernel may distribute its rows over the programs in its own way.
        """
        wrong = [n for n, j in enumerate(judged) if j.ran and not j.right]
        if not wrong or not all(judged[n].plan.sample for n in wrong):
            return
        whole = [replace(judged[n].plan, sample=()) for n in wrong]
        run = self.run(whole)
        for number, n in enumerate(wrong):
            if number in run.data or number in run.errors:
                judged[n] = judge_case(whole[number], run.data.get(number), run.errors.get(number))


def judge_shuffled(
    running: Running, plans: list[Plan], take: Callable[[int, bytes], None] | None
) -> tuple[Run, list[Judged], str]:
    """Run and judge as :meth:`Running.judge_all` does, in a random order of the cases that differs
    from check to check.

    A test must not learn which kernel it gets; an order that followed from the file's text would
    tell it.
    """
    order = list(range(len(plans)))
    random.SystemRandom().shuffle(order)
    take_ordered = take and (lambda number, data: take(order[number], data))
    run, judged, unchecked = running.judge_all([plans[number] for number in order], take_ordered)
    run.data = {order[n]: data for n, data in run.data.items()}
    run.errors = {order[n]: error for n, error in run.errors.items()}
    run.case = None if run.case is None else order[run.case]
    run.left_out = frozenset(order[n] for n in run.left_out)
    return run, [judged[order.index(n)] for n in range(len(plans))], unchecked


def judge_run(plans: list[Plan], run: Run) -> list[Judged]:
    """Judge each plan by the result that the run left for it."""
    return [judge_case(plan, run.data.get(n), run.errors.get(n)) for n, plan in enumerate(plans)]


def forget_unwritten(judged: list[Judged]) -> None:
    """Take away the fault that an output was read before it was written, if the value read shows in
    no output: the code may discard it.

    A case without outputs keeps the fault: the child reports it beside outputs, so such a report is
    forged. After a wrong second run the caller keeps all of these faults.
    """
    for j in judged:
        if (
            j.outputs
            and j.fault
            and j.fault.kind is FaultKind.UNWRITTEN
            and not j.shows_what_was_held
        ):
            j.fault = None


def describe_not_started(run: Run) -> EnvironmentFault:
    """Make the error that blames the machine for a run in which no case began."""
    return jobs.describe_not_started(N_("runs your code"), run.printed)


class FirstFailure:
    """Judges results as they arrive, tells of the first wrong one, and stops the compilation, which
    a failure does not need. The verdict judges all of them anew, as they are after the run."""

    def __init__(
        self, plans: list[Plan], tell: Callable[[str], None], compilation: Compilation | None = None
    ):
        self.plans, self.tell, self.compilation = plans, tell, compilation
        self.has_told = False

    def take(self, number: int, data: bytes) -> None:
        # a wrong sample does not prove a wrong kernel
        if self.has_told or self.plans[number].sample:
            return
        judged = judge(self.plans[number], data)
        if not judged.passed:
            self.has_told = True
            if self.compilation is not None:
                self.compilation.stop()
            self.tell(wording.describe_first_failure(judged, number, len(self.plans)))


def _found_a_deadlock(interpreting: background.Future[Run]) -> bool:
    """Return True once the interpreter has found a deadlock: on the GPU the programs would wait
    until the time limit."""
    if not interpreting.done() or interpreting.exception() is not None:
        return False
    faults = [error.fault for error in interpreting.result().errors.values()]
    return any(
        fault is not None and fault.kind in (FaultKind.DEADLOCK, FaultKind.LIVELOCK)
        for fault in faults
    )


def _add_faults(judged: list[Judged], interpreted: Run) -> str:
    """Add the faults that only the interpreter sees. Return a sentence about what it could not
    check, or "".

    A compiled kernel that reads past the end of a tensor usually gives the right values, and so
    does one whose masked lanes happen to hold 0. A kernel that crashes the GPU's context does not
    show which lane caused it.
    """
    for number, j in enumerate(judged):
        error = interpreted.errors.get(number)
        if error is not None and error.fault is not None:
            j.fault, j.ran = error.fault, True
        elif error is None and j.passed and number in interpreted.data:
            judged[number] = judge(j.plan, interpreted.data[number])
    unseen = [
        error
        for error in interpreted.errors.values()
        if error.fault is None and error.type != "Unplaceable"
    ]
    if interpreted.ended == "finished" and not unseen:
        return ""
    why = f"{unseen[0].type}: {unseen[0].text}" if unseen else interpreted.ended
    return _(
        "Whether it stays inside its tensors could not be looked at in the interpreter ({why})."
    ).format(why=why)
