"""Run kernels on Triton's interpreter and observe each launch."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.plan import CaseLaunch, CaseTensor
from course_lib.grading.execution.case_runner import CaseRunner, require_mode
from course_lib.grading.execution.watch import Watch
from course_lib.launching.faults import FaultKind, Misuse, find_worst

if TYPE_CHECKING:
    import numpy as np

    from course_lib.interpreter.findings import GivenUp, Schedule

# differences up to this part of the largest number that differs are roundings: a buffer in bf16 has
# 8 bits
_ROUNDING = 2.0**-6
_MAX_STEPS = 20_000  # steps of one interleaved launch; far more than a launch of an exercise takes
# ``patience`` in the last schedule of a case: there a wait that gives up after fewer tries does
# give up
_MAX_SPINS = 5000
_MANY_ORDERS = 4  # only a case with at least so many schedules has this patience in its last one


class Interpreter(CaseRunner):
    """Cases on Triton's interpreter, over NumPy memory; PyTorch is not imported."""

    def __init__(self):
        require_mode("cpu")
        import triton.compiler.code_generator  # noqa: F401 - imported before the forks, because every child looks names up in it

        from course_lib.interpreter import hooks, spelling
        from course_lib.interpreter.bounds import OutOfBounds
        from course_lib.launching.interpreted import PlacedLaunch

        # NumPy would warn of a NaN or an overflow, with a line of the interpreter. The values are
        # judged anyway, so the warning is useless.
        warnings.filterwarnings(
            "ignore",
            category=RuntimeWarning,
            module=r"triton\.runtime\.interpreter|course_lib\.interpreter|numpy\.",
        )
        self.place = PlacedLaunch
        self.outside = OutOfBounds
        self.hooks = hooks
        self.spelling = spelling

    def begin(self, module, code, cases, rules) -> None:
        self.spelling.make_interpretable(module)

    def run(self, function, case: CaseLaunch, data: bytes) -> bytes:
        self.misuse = None
        self.given_up: GivenUp | None = None  # a wait that gave up in an order of the programs
        try:
            if not case.interleavings:
                memory = self.once(function, case, data)
                self.misuse = find_worst(
                    self.misuse, self.find_other_bits(function, case, data, memory)
                )
                return memory
            runs = [self.once(function, case, data, 0)]
            of_first = self.misuse
            runs += [self.once(function, case, data, seed) for seed in range(1, case.interleavings)]
        except self.outside as found:
            raise Misuse(
                FaultKind(found.kind), str(found), found.tensor or "", found.line, found.row
            ) from found
        for t in (tensor for tensor in case.tensors if tensor.is_output):
            stale = self.compare_orders(case, t, [r[t.offset : t.offset + t.nbytes] for r in runs])
            if stale is not None and of_first is None:
                self.misuse = stale
        self.misuse = find_worst(self.misuse, _find_unlike(case, runs[0]))
        return runs[0]

    def find_other_bits(
        self, kernel, case: CaseLaunch, data: bytes, memory: bytes
    ) -> Misuse | None:
        """Launch the case's smaller batch, if it has one. Return the first number that has other
        bits there than the launch of the case left in ``memory``. A NaN is like any other."""
        if case.batch is None:
            return None
        import numpy as np

        batch, counts = case.batch, self.counts
        launch = replace(
            case,
            grid=(batch.rows,),
            arguments=batch.arguments,
            constexprs=batch.constexprs,
            sample=(),
            spread={},
        )
        memory_of_batch = self.once(kernel, launch, data)
        self.counts = counts
        rows = [row for row in case.sample or range(batch.rows) if row < batch.rows]
        for t in (tensor for tensor in case.tensors if tensor.is_output):
            here, there = (_read(t, bytes_left)[rows] for bytes_left in (memory, memory_of_batch))
            unlike = np.argwhere((here != there) & ~(np.isnan(here) & np.isnan(there)))
            if not len(unlike):
                continue
            place = tuple(map(int, unlike[0]))
            row, *column = place
            words = _(
                "{element} is {here} in this batch, and {there} in the one with M = {rows},"
                " {launched}"
            ).format(
                element=f"{t.name}[{', '.join(map(str, [rows[row], *column]))}]",
                here=str(here[place]),
                there=str(there[place]),
                rows=batch.rows,
                launched=", ".join(f"{name} = {value}" for name, value in batch.constexprs.items()),
            )
            return Misuse(FaultKind.BATCH, words, t.name, row=rows[row])
        return None

    def compare_orders(self, case: CaseLaunch, t: CaseTensor, runs: list[bytes]) -> Misuse | None:
        """Look for an order of the programs that leaves another output than the first order does.
        If its bits may depend on the order, only more than a rounding counts, and is returned.
        Raises: Misuse if they must not."""
        others = [run for run in runs[1:] if run != runs[0]]
        far = any(_differ_by_more_than_rounding(t, runs[0], other) for other in others)
        if not others or (case.any_order and not far):
            return None
        far_off = _("{name} has quite other values when the programs run in another order")
        if case.any_order:
            return Misuse(FaultKind.STALE_IN_AN_ORDER, far_off.format(name=t.name), t.name)
        if self.given_up is not None:
            raise Misuse(
                FaultKind.GAVE_UP,
                f"{self.given_up.message}{_('.')}",
                t.name,
                self.given_up.step.line,
            )
        # without words to wait for no program reads what another one stores
        if far and any(tensor.scratch for tensor in case.tensors):
            raise Misuse(FaultKind.STALE, far_off.format(name=t.name), t.name)
        words = _("{name} has other bits when the programs run in another order")
        raise Misuse(FaultKind.ORDER, words.format(name=t.name), t.name)

    def once(self, kernel, case: CaseLaunch, data: bytes, seed: int | None = None) -> bytes:
        """Run one launch: the programs in order, or interleaved as ``seed`` draws it."""
        placed = self.place(case, data)
        watch = Watch(case, placed.regions, self.hooks.line_of_kernel)
        if seed is None:
            with self.hooks.observing_reductions(watch.meet):
                placed.run(kernel, watch)
        else:
            patience = _MAX_SPINS if seed + 1 == case.interleavings >= _MANY_ORDERS else 0
            outcome = placed.interleave(
                kernel,
                watch,
                seed=seed,
                resident=case.resident,
                max_steps=_MAX_STEPS,
                patience=patience,
            )
            misuse = find_misuse(outcome)
            self.given_up = self.given_up or next(
                (wait for wait in outcome.given_up if wait.tries > 1), None
            )
            if misuse is not None:
                # A write to an input usually races as well. Report the write: it is the cause.
                raise watch.written or misuse
        self.misuse = find_worst(self.misuse, watch.find_misuse())
        self.counts = watch.counts
        return placed.read_memory()


def _read(t: CaseTensor, memory: bytes) -> np.ndarray:
    """Return the tensor's elements in the memory that a launch has left."""
    import numpy as np

    from course_lib.grading.cases.buffers import DTYPES

    return np.ndarray(
        t.shape,
        DTYPES[t.dtype],
        memory,
        t.start,
        tuple(stride * t.itemsize for stride in t.packed_strides),
    )


def _differ_by_more_than_rounding(t: CaseTensor, before: bytes, other: bytes) -> bool:
    """Return True if a number of ``other`` is farther from that of ``before`` than another order of
    a sum explains, or is a NaN or an Inf where that is none."""
    import numpy as np

    from course_lib.grading.cases.buffers import DTYPES

    with np.errstate(invalid="ignore"):  # what was never written is a signalling NaN
        a, b = (np.frombuffer(data, DTYPES[t.dtype]).astype(np.float64) for data in (before, other))
    finite = np.isfinite(a) & np.isfinite(b)
    if (np.isfinite(a) != np.isfinite(b)).any():
        return True
    off = np.abs(a[finite] - b[finite])
    size = np.maximum(np.abs(a[finite]), np.abs(b[finite]))[off > 0].max(initial=0.0)
    return bool((off > _ROUNDING * size).any())


def _find_unlike(case: CaseLaunch, memory: bytes) -> Misuse | None:
    """Return the first row of an output that is to have the same bits in all columns, and has not.
    A NaN is like any other."""
    import numpy as np

    for t in case.tensors:
        if t.name not in case.alike:
            continue
        values = np.frombuffer(memory, np.float32, count=t.elements, offset=t.start).reshape(
            t.shape
        )
        first_column = values[:, :1]
        unlike = np.argwhere(
            (values != first_column) & ~(np.isnan(values) & np.isnan(first_column))
        )
        if len(unlike):
            row, column = map(int, unlike[0])
            words = _("{name}[{row}, {column}] has other bits than {name}[{row}, 0]").format(
                name=t.name, row=row, column=column
            )
            return Misuse(FaultKind.UNLIKE, words, t.name, row=row)
    return None


def find_misuse(outcome: Schedule) -> Misuse | None:
    """Return the first finding of an interleaved run."""
    if outcome.races:
        race = outcome.races[0]
        of_race = (race.first.program, race.second.program)
        # A loop that has tried only once does not wait.
        waits = [
            wait for wait in outcome.given_up if wait.step.program in of_race and wait.tries > 1
        ]
        if waits:
            words = _("{race} Before that {wait}.").format(race=race.message, wait=waits[0].message)
            return Misuse(FaultKind.GAVE_UP, words, race.where.split("[")[0], waits[0].step.line)
        kind = (
            FaultKind.BOTH_STORE
            if race.first.kind == race.second.kind == "store"
            else FaultKind.RACE
        )
        return Misuse(kind, race.message, race.where.split("[")[0], race.second.line)
    if outcome.deadlock:
        return Misuse(
            FaultKind.DEADLOCK, outcome.deadlock.message, "", outcome.deadlock.waits[0].step.line
        )
    if outcome.limit:
        return Misuse(FaultKind.LIVELOCK, outcome.limit, "", None)
    if outcome.no_barrier:
        missing = outcome.no_barrier[0]
        kind = (
            FaultKind.EACH_LOADS
            if missing.first.program == missing.second.program
            else FaultKind.NO_BARRIER
        )
        return Misuse(kind, missing.message, missing.where.split("[")[0], missing.line)
    return None
