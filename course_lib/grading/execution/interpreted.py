"""Run kernels on Triton's interpreter and observe each launch."""

from __future__ import annotations

import contextlib
import warnings

from course_lib.grading.cases.raised import FaultKind
from course_lib.grading.execution.far import FarTensor
from course_lib.grading.execution.misuse import CaseRunner, Misuse, find_worst, require_mode
from course_lib.grading.execution.watch import Watch

_MAX_STEPS = 20_000  # steps of one interleaved launch; far more than a launch of an exercise takes
_MAX_SPINS = 5000  # ``patience`` in the last schedule of a case: there a wait that gives up after fewer tries does give up
_MANY_ORDERS = 4  # only a case with at least so many schedules has this patience in its last one


class Interpreter(CaseRunner):
    """Cases on Triton's interpreter, over NumPy memory; PyTorch is not imported."""

    def __init__(self):
        require_mode("cpu")
        import triton.compiler.code_generator  # noqa: F401 - imported before the forks, because every child looks names up in it

        from course_lib.interpreter import bounds, hooks, launch, schedule, spelling

        # NumPy would warn of a NaN or an overflow, with a line of the interpreter. The values are judged anyway, so the warning is useless.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter|course_lib\.interpreter|numpy\.")
        self.launch, self.bounds, self.schedule, self.hooks, self.spelling = launch, bounds, schedule, hooks, spelling
        try:
            hooks.patch()
            self.checked, self.observing = bounds.checked, hooks.observing
        except AttributeError:
            # This version of Triton is not tested. The guards around outputs still show a write outside. `course doctor` lists the losses.
            self.checked = self.observing = contextlib.nullcontext

    def begin(self, module, code, job) -> None:
        self.spelling.make_interpretable(module)

    def run(self, function, case: dict, data: bytes) -> bytes:
        self.misuse = None
        if not case["interleavings"]:
            return self.once(function, case, data)
        seeds = range(case["interleavings"])
        runs = [self.once(function, case, data, seed) for seed in seeds]
        for t in case["tensors"]:
            here = slice(t["offset"], t["offset"] + t["nbytes"])
            if t["output"] and not case["any_order"] and any(other[here] != runs[0][here] for other in runs):
                raise Misuse(FaultKind.ORDER, f"{t['name']} has other bits when the programs run in another order", t["name"], None)
        return runs[0]

    def once(self, kernel, case: dict, data: bytes, seed: int | None = None) -> bytes:
        """Run one launch: the programs in order, or interleaved as ``seed`` draws it."""
        import numpy as np

        memory = np.frombuffer(bytearray(data), dtype=np.uint8)
        addresses, regions, far = {}, [], []
        for tensor in case["tensors"]:
            start = memory.ctypes.data + tensor["start"]
            if tensor["far"]:
                apart = FarTensor(tensor, memory)
                far.append(apart)
                start = apart.address
            addresses[tensor["name"]] = self.launch.pointer(start, tensor["dtype"])
            regions.append(self.bounds.Region(tensor["name"], start, tensor["itemsize"], tensor["shape"], tensor["strides"]))
        make = {"tensor": addresses.__getitem__, "int": self.launch.integer, "float": float}
        arguments = [make[kind](value) for kind, value in case["arguments"]]
        watch = Watch(case, regions, self.hooks.line_of_kernel)
        try:
            with self.checked(regions), self.observing(watch):
                if seed is None:
                    self.launch.launch(kernel, case["grid"], arguments, case["constexprs"], case["sample"])
                else:
                    self.interleaved(kernel, case, arguments, seed)
        except Misuse:
            # A write to an input usually races as well. Report the write: it is the cause.
            if watch.written is not None:
                raise watch.written from None
            raise
        self.misuse = find_worst(self.misuse, watch.find_misuse())
        for apart in far:
            apart.collect(memory)
        return memory.tobytes()

    def interleaved(self, kernel, case: dict, arguments: list, seed: int) -> None:
        patience = _MAX_SPINS if seed + 1 == case["interleavings"] >= _MANY_ORDERS else 0
        outcome = self.schedule.run(
            kernel, tuple(case["grid"]), *arguments, seed=seed, max_steps=_MAX_STEPS, patience=patience, **case["constexprs"]
        )
        if outcome.races:
            race = outcome.races[0]
            of_race = (race.first.program, race.second.program)
            # A loop that has tried only once does not wait.
            waits = [found for found in outcome.given_up if found.step.program in of_race and found.tries > 1]
            if waits:
                words = f"{race.message} Before that {waits[0].message}."
                raise Misuse(FaultKind.GAVE_UP, words, race.where.split("[")[0], waits[0].step.line)
            kind = FaultKind.BOTH_STORE if race.first.kind == race.second.kind == "store" else FaultKind.RACE
            raise Misuse(kind, race.message, race.where.split("[")[0], race.second.line)
        if outcome.deadlock:
            raise Misuse(FaultKind.DEADLOCK, outcome.deadlock.message, "", outcome.deadlock.waits[0].step.line)
        if outcome.limit:
            raise Misuse(FaultKind.LIVELOCK, outcome.limit, "", None)
        if outcome.no_barrier:
            found = outcome.no_barrier[0]
            raise Misuse(FaultKind.NO_BARRIER, found.message, found.where.split("[")[0], (found.release or found.first).line)
