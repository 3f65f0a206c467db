"""Runs a learner's kernel, or function, on raw bytes and decides nothing.

The last process of the chain that ``server.py`` makes, confined before it gets here. It knows no exercise: the job names an
entry point, a grid and the arguments of each case; ``NN.in`` holds the case's buffers one after the other, and ``NN.out`` gets
them back. What happened on the way goes to ``NN.error``. The parent takes only the bytes for evidence.
"""

from __future__ import annotations

import abc
import bisect
import contextlib
import fractions
import importlib
import importlib.util
import json
import math
import numbers
import sys
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from course_lib.grading.execution.dependence import find_ignored
from course_lib.grading.execution.guard import Guard, Refused
from course_lib.grading.submission.extract_kernels import Unreadable
from course_lib.grading.submission.names import WITHOUT_SANDBOX
from course_lib.grading.submission.places import Span
from course_lib.sandbox import isolation
from course_lib.sandbox.machine import Machine, begin_case, write_whole

REFUSED = Refused.__name__
_MAX_STEPS = 20_000  # of one interleaved launch; an exercise's takes a few hundred
_PATIENCE = 5000  # of those, for waits that give up: in the last order of a case that has
_MANY_ORDERS = 4
_ALIGNMENT = 16  # bytes, that the launcher looks for
_GPU_FRACTION = 0.9  # of its memory: whatever else the person runs there keeps going


def make_machine(mode: str) -> Machine:
    """What runs cases in ``mode``: "cpu" (kernels, interpreted), "gpu" (compiled), "torch", "numpy" or "autograd" (functions), "tests" (of kernels)."""
    make = {"cpu": _Interpreter, "gpu": _Gpu, "torch": _Torch, "numpy": _NumPy, "autograd": _autograd, "tests": _tests}[
        mode
    ]
    return _CaseMachine(make())


class _CaseMachine(Machine):
    """Runs the cases of a job, one after the other. ``runs`` knows how one case is run."""

    def __init__(self, runs):
        self.runs = runs

    def start(self) -> None:
        if isinstance(self.runs, _Gpu):
            self.runs.open_device()

    def work(self, job: dict[str, Any], folder: Path) -> None:
        _work(job, folder, self.runs)


def _work(job: dict, folder: Path, runs) -> None:
    """Every case of the job on ``runs``. What happens from here on, the learner's code may have done."""
    file = folder / "kernels.py"
    guard = _Torch.guard = Guard(job["rules"]) if job["rules"] else None
    try:
        if guard and job["tier"] == isolation.LIMITS and job["rules"]["unlisted"]:
            raise _make_unlisted(job["rules"]["unlisted"])
        kernels = _imported(file, guard)
    except Unreadable as refused:
        write_whole(folder / "import.error", _describe_refused(refused))
        return
    except BaseException as error:
        refusal = (guard and guard.refusal) or error
        write_whole(folder / "import.error", _described(refusal, str(file)))
        return
    if isinstance(runs, _Gpu):
        runs.prepare(kernels, job["cases"])
    for number, case in enumerate(job["cases"]):
        begin_case(folder, number)
        if number in job["left_out"]:
            continue
        try:
            data = runs.run(getattr(kernels, case["entry_point"]), case, (folder / f"{number:02}.in").read_bytes())
            if guard and guard.refusal:
                raise guard.refusal
        except BaseException as error:
            if guard and guard.refusal:  # whatever the code raised after it
                write_whole(folder / f"{number:02}.error", _described(guard.refusal, str(file)))
                return
            sys.stdout.flush()
            lost = runs.lost(error)
            write_whole(folder / f"{number:02}.error", _described(error, str(file), lost))
            if lost:
                return
        else:
            sys.stdout.flush()
            if runs.misuse is not None:
                write_whole(folder / f"{number:02}.error", _described(runs.misuse, str(file)))
            write_whole(folder / f"{number:02}.out", data)


def _make_unlisted(said: dict[str, Any]) -> Unreadable:
    """The refusal by the lists: they are what protects a machine that shuts nothing in."""
    span = Span(**said["span"]) if said["span"] else None
    return Unreadable(said["cause"], f"{said['message']} {WITHOUT_SANDBOX}", f"{said['what']} {WITHOUT_SANDBOX}", span)


def _imported(file: Path, guard: Guard | None):
    described = importlib.util.spec_from_file_location("kernels", file)
    assert described is not None and described.loader is not None  # a file that ends in .py has both
    module = importlib.util.module_from_spec(described)
    sys.modules["kernels"] = module  # Triton looks a kernel's module up by its name
    if guard is None:
        described.loader.exec_module(module)
    else:
        guard.execute(module, file)
    return module


def far_bytes(case: dict) -> int:
    """Address space that the case's far tensors take."""
    return sum(_reach(tensor) + _below(tensor) for tensor in case["tensors"] if tensor["far"])


def _reach(tensor: dict) -> int:
    apart = tensor["strides"].index(max(tensor["strides"]))
    return (tensor["shape"][apart] - 1) * tensor["strides"][apart] * tensor["itemsize"] + 2**20


def _below(tensor: dict) -> int:
    """How far below the tensor an offset lies at most that overflowed to a negative number."""
    return min(_reach(tensor), 2**31 * tensor["itemsize"] + 2**20)


def _choose(mode: str) -> None:
    """Between the interpreter, mended, and the compiler: before anything imports Triton."""
    import course_lib

    chosen = course_lib.MODE
    if chosen != mode:
        raise RuntimeError(f"this process is in {chosen} mode")


class _Machine:
    """What runs cases. ``misuse`` is that of the last case which came to its end."""

    misuse: Misuse | None = None

    def lost(self, error: BaseException) -> bool:
        """True if no further case can be run after ``error``."""
        return not isinstance(error, Exception)


class _Interpreter(_Machine):
    """Cases on Triton's interpreter, over NumPy memory; PyTorch is not imported."""

    def __init__(self):
        _choose("cpu")
        import triton.compiler.code_generator  # noqa: F401 - names are looked up in it: imported before the forks

        from course_lib.interpreter import bounds, hooks, launch, schedule, spelling

        Guard.make_interpretable = staticmethod(spelling.make_interpretable)

        # NumPy's warnings of a NaN or an overflow in the interpreter's own lines: nobody printed them, and the values are judged
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter|course_lib\.interpreter|numpy\."
        )
        self.launch, self.bounds, self.schedule, self.hooks = launch, bounds, schedule, hooks
        try:
            hooks.patch()
            self.checked, self.observing = bounds.checked, hooks.observing
        except AttributeError:
            # an untested Triton: the guards around outputs still show a write, `course doctor` names the loss
            self.checked = self.observing = contextlib.nullcontext

    def run(self, kernel, case: dict, data: bytes) -> bytes:
        self.misuse = None
        if not case["interleavings"]:
            return self.once(kernel, case, data)
        seeds = range(case["interleavings"])
        runs = [self.once(kernel, case, data, seed) for seed in seeds]
        for t in case["tensors"]:
            here = slice(t["offset"], t["offset"] + t["nbytes"])
            if t["output"] and not case["any_order"] and any(other[here] != runs[0][here] for other in runs):
                raise Interleaved(
                    "order", f"{t['name']} has other bits when the programs run in another order", t["name"], None
                )
        return runs[0]

    def once(self, kernel, case: dict, data: bytes, seed: int | None = None) -> bytes:
        """One launch: the programs in order, or interleaved as ``seed`` draws it."""
        import numpy as np

        memory = np.frombuffer(bytearray(data), dtype=np.uint8)
        addresses, regions, far = {}, [], []
        for tensor in case["tensors"]:
            start = memory.ctypes.data + tensor["start"]
            if tensor["far"]:
                apart = _Far(tensor, memory)
                far.append(apart)
                start = apart.address
            addresses[tensor["name"]] = self.launch.pointer(start, tensor["dtype"])
            regions.append(
                self.bounds.Region(tensor["name"], start, tensor["itemsize"], tensor["shape"], tensor["strides"])
            )
        make = {"tensor": addresses.__getitem__, "int": self.launch.integer, "float": float}
        arguments = [make[kind](value) for kind, value in case["arguments"]]
        watch = _Watch(case, regions, self.hooks.line_of_kernel)
        try:
            with self.checked(regions), self.observing(watch):
                if seed is None:
                    self.launch.launch(kernel, case["grid"], arguments, case["constexprs"], case["sample"])
                else:
                    self.interleaved(kernel, case, arguments, seed)
        except Interleaved:
            if (
                watch.written is not None
            ):  # who writes to an input mostly races, too, and need not synchronise but stop writing
                raise watch.written from None
            raise
        self.misuse = _worse(self.misuse, watch.find_misuse())
        for apart in far:
            apart.collect(memory)
        return memory.tobytes()

    def interleaved(self, kernel, case: dict, arguments: list, seed: int) -> None:
        patience = _PATIENCE if seed + 1 == case["interleavings"] >= _MANY_ORDERS else 0
        outcome = self.schedule.run(
            kernel,
            tuple(case["grid"]),
            *arguments,
            seed=seed,
            max_steps=_MAX_STEPS,
            patience=patience,
            **case["constexprs"],
        )
        if outcome.races:
            race = outcome.races[0]
            of_race = (race.first.program, race.second.program)
            # one try is no wait
            waits = [found for found in outcome.given_up if found.step.program in of_race and found.tries > 1]
            if waits:
                words = f"{race.message} Before that {waits[0].message}."
                raise Interleaved("gave up", words, race.where.split("[")[0], waits[0].step.line)
            kind = "both store" if race.first.kind == race.second.kind == "store" else "race"
            raise Interleaved(kind, race.message, race.where.split("[")[0], race.second.line)
        if outcome.deadlock:
            raise Interleaved("deadlock", outcome.deadlock.message, "", outcome.deadlock.waits[0].step.line)
        if outcome.limit:
            raise Interleaved("livelock", outcome.limit, "", None)
        if outcome.no_barrier:
            found = outcome.no_barrier[0]
            raise Interleaved(
                "no barrier", found.message, found.where.split("[")[0], (found.release or found.first).line
            )


class Interleaved(Exception):
    """What only another order of the programs shows.

    ``kind`` is "race", "both store" (a race in which neither program reads), "gave up", "deadlock", "livelock", "no barrier" or "order".
    """

    def __init__(self, kind: str, message: str, tensor: str, line: int | None):
        super().__init__(message)
        self.kind, self.tensor, self.row, self.line = kind, tensor, None, line


class Misuse(Exception):
    """What a case did that its outputs need not show. Mostly not raised: the case goes on, and its values count, too.

    ``kind`` is one of :data:`_KINDS`, ``tensor`` the name of the tensor, "" where there is none.
    """

    def __init__(self, kind: str, message: str, tensor: str = "", line: int | None = None):
        super().__init__(message)
        self.kind, self.tensor, self.row, self.line = kind, tensor, None, line


# the worst first: an input is written, a tensor is read too often, most loads have no lane, a program works alone, another entry point does the
# work, or does none where it should, autograd cannot see a tensor, an output is read before it is written
_KINDS = ("input", "reads", "empty", "alone", "calls", "uncalled", "ctx", "unwritten")


def _worse(*found: Misuse | None) -> Misuse | None:
    return min((misuse for misuse in found if misuse is not None), key=lambda m: _KINDS.index(m.kind), default=None)


def _at(line: int | None) -> str:
    return "" if line is None else f" at line {line}"


_FEW_PROGRAMS = 3  # with fewer, one program may well have everything to do
_SOME_PROGRAMS = 5  # with fewer, one that takes several parts may well have nearly everything to do
_NEARLY_ALL = 0.9  # of the elements


class _Watch:
    """Follows a launch through memory: writes to inputs, how often elements are read and by whom, reads of unwritten outputs.

    It counts lanes; masked ones touch nothing. An atomic reads and writes, also one that adds 0. ``written`` is the first
    write to an input.
    """

    def __init__(self, case: dict, regions: list, line_of_kernel):
        import numpy as np

        self.allowed, self.spread, self.line_of_kernel = case["reads"], case["spread"], line_of_kernel
        self.programs = math.prod(case["grid"])
        self.empty_allowed: int | None = case["empty_loads"]
        self.loads = {True: 0, False: 0}  # those that have a lane, and those that have none
        self.regions = sorted((region for region in regions if region.elements), key=lambda region: region.low)
        self.lows = [region.low for region in self.regions]
        self.inputs = {t["name"] for t in case["tensors"] if not t["output"] and not t["scratch"]}
        near = {t["name"] for t in case["tensors"] if t["output"] and not t["far"]}
        self.stored = {  # which elements of an output somebody has stored to
            region.name: np.zeros((region.high - region.low) // region.itemsize + 1, bool)
            for region in self.regions
            if region.name in near
        }
        self.lanes: dict[str, dict[int | None, int]] = {
            name: {} for name in self.allowed
        }  # tensor -> line -> lanes read
        self.shares: dict[str, dict[tuple, int]] = {name: {} for name in self.spread}  # tensor -> program -> lanes
        self.written: Misuse | None = None
        self.unwritten: Misuse | None = None

    def __call__(self, access) -> None:
        live = access.live()
        if access.kind == "load":
            self.loads[bool(live.size)] += 1
        if not live.size:
            return
        at = bisect.bisect_right(self.lows, int(live[0])) - 1
        if at < 0 or int(live[0]) > self.regions[at].high:
            return
        region = self.regions[at]
        name, reads, writes = region.name, access.kind != "store", access.kind != "load"
        if writes and self.written is None and name in self.inputs:
            line = self.find_line()
            how = " by an atomic, which stores also where it adds 0" if reads else ""
            self.written = Misuse("input", f"{name} is an input and is written{_at(line)}{how}", name, line)
        if reads and name in self.lanes:
            lines, line = self.lanes[name], self.find_line()
            lines[line] = lines.get(line, 0) + live.size
        if name in self.shares and (reads if name in self.inputs else writes):
            shares = self.shares[name]
            shares[access.program] = shares.get(access.program, 0) + live.size
        if (stored := self.stored.get(name)) is not None:
            elements = (live - region.low) // region.itemsize
            if reads and self.unwritten is None and not stored[elements].all():
                line = self.find_line()
                self.unwritten = Misuse(
                    "unwritten", f"{name} is read{_at(line)} before anything is stored there", name, line
                )
            if writes:
                stored[elements] = True

    def find_line(self) -> int | None:
        _, line = self.line_of_kernel() or (None, None)
        return line

    def find_misuse(self) -> Misuse | None:
        """The worst of what happened."""
        return _worse(
            self.written, self.find_excess(), self.find_empty_turns(), self.find_lone_program(), self.unwritten
        )

    def find_empty_turns(self) -> Misuse | None:
        """Turns of a loop in which every load is masked off in all its lanes: they cost time, and no result shows them."""
        if self.empty_allowed is None or self.loads[False] <= self.loads[True] + self.empty_allowed:
            return None
        words = f"{self.loads[False]} of {sum(self.loads.values())} loads have no lane at all: the loop goes on where no tile is left"
        return Misuse("empty", words)

    def find_excess(self) -> Misuse | None:
        """The first tensor that was read too often. One element a row is free: some algorithms look at a row's first."""
        for region in self.regions:
            if region.name not in self.allowed:
                continue
            lines, allowed = self.lanes[region.name], self.allowed[region.name]
            total = sum(lines.values())
            if total <= allowed * region.elements + region.shape[0]:
                continue
            at = sorted(line for line in lines if line is not None)
            where = f", at line{'s' * (len(at) > 1)} {', '.join(map(str, at))}" if at else ""
            asked = {0: "it need not be read at all", 1: "the exercise asks for once"}.get(
                allowed, f"the exercise asks for {allowed} times"
            )
            often = f"{total / region.elements:.1f}"
            words = f"{region.name} is read {'once' if often == '1.0' else f'{often} times'}{where}; {asked}"
            return Misuse("reads", words, region.name, at[-1] if at else None)
        return None

    def find_lone_program(self) -> Misuse | None:
        """The first tensor of which one program does all, or nearly all, that several are asked to do."""
        for name, shares in self.shares.items():
            total, program = sum(shares.values()), max(shares, key=shares.__getitem__, default=None)
            limit = _NEARLY_ALL * total if self.spread[name] >= _SOME_PROGRAMS else total
            if program is None or self.spread[name] < _FEW_PROGRAMS or shares[program] < limit:
                continue
            number = program if any(program[1:]) else program[0]
            extent = "all" if shares[program] == total else "nearly all"
            what = "loads" if name in self.inputs else "stores"
            words = (
                f"program {number} of {self.programs} does {extent} the {what} of {name}; "
                "the exercise gives every program a part of its own"
            )
            return Misuse("alone", words, name)
        return None


class Unplaceable(Exception):
    """This GPU has no room for rows so far apart. Not the kernel's fault: the interpreter has to do for the case."""


class _Far:
    """Rows, or columns, that lie far apart, in address space that takes memory only where it is touched.

    The mapping reaches below the tensor as well: an offset that overflowed to a negative number then reads
    zeros, and the case fails by its values instead of taking the process down.
    """

    def __init__(self, tensor: dict, memory):
        import numpy as np

        below = _below(tensor)
        self.mapping = isolation.reserve(_reach(tensor) + below)
        self.bytes = np.frombuffer(self.mapping, dtype=np.uint8)
        self.address = self.bytes.ctypes.data + below
        far, near = (0, 1) if tensor["strides"][0] >= tensor["strides"][1] else (1, 0)
        width, apart = tensor["shape"][near] * tensor["itemsize"], tensor["strides"][far] * tensor["itemsize"]
        self.rows = [(below + r * apart, tensor["start"] + r * width, width) for r in range(tensor["shape"][far])]
        for there, here, size in self.rows:
            self.bytes[there : there + size] = memory[here : here + size]

    def collect(self, memory) -> None:
        for there, here, size in self.rows:
            memory[here : here + size] = self.bytes[there : there + size]


class _Gpu(_Machine):
    """Cases compiled, on the first GPU."""

    def __init__(self):
        import torch
        import triton.language  # imported before the forks
        from triton.backends.nvidia.driver import CudaDriver

        from course_lib.compiler.machine import put_off_nothing

        with put_off_nothing():
            # a C compiler builds it, which takes half a second; it does not open the GPU
            triton.runtime.driver.set_active(CudaDriver())
        self.torch, self.side_by_side = torch, triton.AsyncCompileMode
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32}

    def open_device(self) -> None:
        """Make a context on the GPU: one that does not answer is found before the learner's code is looked at."""
        _choose("gpu")  # asks the GPU, too
        self.torch.cuda.set_per_process_memory_fraction(_GPU_FRACTION)
        self.torch.zeros(1, device="cuda")

    def prepare(self, module, cases: list[dict]) -> None:
        """Compile what the cases launch, side by side. What the compiler refuses, it refuses again at the launch, in its case."""
        memory = self.torch.empty(2 * _ALIGNMENT, dtype=self.torch.uint8, device="cuda")
        with ThreadPoolExecutor() as pool, self.side_by_side(pool, ignore_errors=True):
            for case in cases:
                like = {}  # a tensor's dtype and alignment are all that a kernel is specialised on
                for t in case["tensors"]:
                    apart = (t["start"] - t["offset"]) % _ALIGNMENT
                    like[t["name"]] = memory[apart : apart + _ALIGNMENT].view(self.dtypes[t["dtype"]])
                make = {"tensor": like.__getitem__, "int": int, "float": float}
                arguments = [make[kind](value) for kind, value in case["arguments"]]
                with contextlib.suppress(Exception):
                    kernel = getattr(module, case["entry_point"])
                    kernel.warmup(
                        *arguments, grid=tuple(case["grid"]), num_warps=case["num_warps"], **case["constexprs"]
                    )

    def run(self, kernel, case: dict, data: bytes) -> bytes:
        torch = self.torch
        memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        # one allocation a tensor: neighbours on the device are then not the case's own tensors
        buffers = {t["name"]: memory[t["offset"] : t["offset"] + t["nbytes"]].cuda() for t in case["tensors"]}
        views, far = {}, []
        for t in case["tensors"]:
            dtype, skip = self.dtypes[t["dtype"]], (t["start"] - t["offset"]) // t["itemsize"]
            flat = buffers[t["name"]].view(dtype)
            views[t["name"]] = flat.as_strided(t["shape"], pack(t) if t["far"] else t["strides"], skip)
            if t["far"]:
                try:
                    storage = torch.empty(_reach(t) // t["itemsize"], dtype=dtype, device="cuda")
                except torch.cuda.OutOfMemoryError as refused:
                    raise Unplaceable(str(refused)) from None
                wide = storage.as_strided(t["shape"], t["strides"])
                wide.copy_(views[t["name"]])
                far.append((views[t["name"]], wide))
                views[t["name"]] = wide
        make = {"tensor": views.__getitem__, "int": int, "float": float}
        kernel[tuple(case["grid"])](
            *[make[kind](value) for kind, value in case["arguments"]], **case["constexprs"], num_warps=case["num_warps"]
        )
        for packed, wide in far:
            packed.copy_(wide)
        out = torch.cat([buffers[t["name"]] for t in case["tensors"]])
        torch.cuda.synchronize()
        return out.cpu().numpy().tobytes()

    def lost(self, error: BaseException) -> bool:
        """A CUDA error that is not a compiler's or an allocator's message leaves no context to go on with."""
        return (
            not isinstance(error, Exception) or "CUDA error" in str(error) or type(error).__name__ == "AcceleratorError"
        )


class WrongReturn(Exception):
    """A function returned something else than it was asked for: ``str()`` says what, in words."""


class _Functions(_Machine, abc.ABC):
    """Cases that call a plain function: tensors in, one tensor or a tuple of them out."""

    noun: str  # what the function returns

    def run(self, function, case: dict, data: bytes) -> bytes:
        memory = bytearray(data)
        views = {t["name"]: self.view(memory, t) for t in case["tensors"]}
        make = {"tensor": views.__getitem__, "int": int, "float": float}
        inputs = {t["name"]: views[t["name"]] for t in case["tensors"] if not t["output"]}
        with self.watching(inputs) as changes, _listening(function, case["calls"]) as calls:
            returned = (call := lambda: function(*[make[kind](value) for kind, value in case["arguments"]]))()
        self.misuse = _worse(*changes, *calls)
        wanted = [t for t in case["tensors"] if t["output"]]
        for t, value in zip(wanted, self.split(returned, wanted, case["entry_point"]), strict=True):
            self.take(views[t["name"]], value, t)
        if self.misuse is None and case["calls"]:
            ignored = find_ignored(function, case["calls"], call, returned)
            self.misuse = _worse(*(Misuse("uncalled", words) for words in ignored))
        return bytes(memory)

    def split(self, returned: Any, wanted: list[dict], function: str) -> tuple | list:
        """What was returned, one value an output. Several come as a tuple, a named one or any other kind, or as a list: all hold
        them in their order.

        Raises: WrongReturn if it is something else, or if one was asked for and came inside a tuple.
        """
        kind = type(returned)  # not isinstance, which asks the object itself
        if kind is not tuple and issubclass(kind, tuple):
            returned = tuple(tuple.__iter__(returned))  # what it holds, whatever its class makes of that
        if kind is list and len(wanted) == 1 and wanted[0]["any_dtype"] and wanted[0]["shape"]:
            return (returned,)  # the numbers of an array, one by one
        if returned is None:
            got = "None"
        elif type(returned) not in (tuple, list):
            if len(wanted) == 1:
                return (returned,)
            got = f"one {self.noun}" if issubclass(kind, self.types) else f"`{kind.__name__}`"
        elif len(returned) == len(wanted) == 1:
            raise WrongReturn(f"`{function}` returned a {kind.__name__} of one; asked for: the {self.noun} itself")
        elif len(returned) == len(wanted):
            return returned
        else:
            got = f"{len(returned)} value" + "s" * (len(returned) != 1)
        raise WrongReturn(f"`{function}` returned {got}; asked for: {', '.join(t['name'] for t in wanted)}")

    @property
    @abc.abstractmethod
    def types(self) -> tuple[type, ...]:
        """What may be returned, subclasses left out."""

    @abc.abstractmethod
    def watching(self, inputs: dict[str, Any]) -> contextlib.AbstractContextManager[list[Misuse]]:
        """The list has, after the block, what the block changed of ``inputs``."""

    @abc.abstractmethod
    def view(self, memory: bytearray, t: dict) -> Any:
        """The tensor or array that lies over ``memory`` where the description ``t`` says."""

    @abc.abstractmethod
    def take(self, view: Any, value: Any, t: dict) -> None:
        """Copy a returned value into its view.

        Raises: WrongReturn if it has another type, shape or dtype than asked for.
        """

    def widen(self, value: Any, t: dict) -> Any:
        """Where any dtype will do, a list of numbers is an array, and True and a fraction are numbers."""
        if t["whole"] and not issubclass(type(value), numbers.Integral):
            raise WrongReturn(
                f"{t['name']} came back as {value if type(value) is float else type(value).__name__}; asked for: a whole number, an `int`"
            )
        if not t["any_dtype"]:
            return value
        if t["shape"] and type(value) is list:
            try:
                return self.make_array(value)
            except (TypeError, ValueError, RuntimeError):
                self.refuse(t, "a list that is no array of numbers")
        if type(value) is fractions.Fraction:
            return float(value)
        return int(value) if type(value) is bool else value

    @abc.abstractmethod
    def make_array(self, numbers: list) -> Any:
        """The tensor or array of these numbers. Raises: TypeError, ValueError or RuntimeError if they are none."""

    @staticmethod
    def refuse(t: dict, got: str) -> None:
        shape = f"shape {_tuple(t['shape'])}" if t["shape"] else "one number"
        raise WrongReturn(f"{t['name']} came back as {got}; asked for: {shape}, {t['dtype']}")


def _tuple(shape) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


@contextlib.contextmanager
def _listening(function, wanted: dict[str, int]) -> Iterator[list[Misuse]]:
    """The list has, after the block, how the block went against ``wanted``: the other entry points that ``function`` has to
    call, how often at least, and with 0 those that it is not to call."""
    module, found = vars(sys.modules[function.__module__]), []
    lines: dict[str, list[int]] = {name: [] for name in wanted}

    def listen(name: str, called):
        def listener(*arguments, **named):
            lines[name].append(sys._getframe(1).f_lineno)
            return called(*arguments, **named)

        return listener

    called = {name: module[name] for name in wanted}
    module.update({name: listen(name, other) for name, other in called.items()})
    try:
        yield found
    finally:
        module.update(called)
    for name, least in wanted.items():
        at, caller = lines[name], function.__name__
        if at and not least:
            words = f"`{caller}` calls `{name}`{_at(at[0])}; the exercise asks each for an algorithm of its own"
            found.append(Misuse("calls", words, line=at[0]))
        elif len(at) < least:
            words = f"`{caller}` calls `{name}` {len(at)} times, where at least {least} are asked for"
            found.append(Misuse("uncalled", words))


def _find_learner() -> int | None:
    """The line of the learner's file that does what PyTorch is at; None if somebody else does, as the interpreter of a launch."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != __name__ and module.partition(".")[0] != "torch":
            return frame.f_lineno if module == "kernels" else None
        frame = frame.f_back
    return None


class _NumPy(_Functions):
    noun = "array"

    def __init__(self):
        import ml_dtypes
        import numpy as np

        self.np = np
        self.dtypes = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    @property
    def types(self) -> tuple[type, ...]:
        return (self.np.ndarray, self.np.generic)

    def view(self, memory: bytearray, t: dict):
        flat = self.np.frombuffer(
            memory if t["output"] else bytes(memory),  # nobody makes an array over bytes writeable again
            dtype=self.dtypes[t["dtype"]],
            offset=t["start"],
            count=(t["nbytes"] + t["offset"] - t["start"]) // t["itemsize"],
        )
        array = self.np.lib.stride_tricks.as_strided(
            flat, t["shape"], [stride * t["itemsize"] for stride in t["strides"]]
        )
        return array if t["shape"] or t["output"] else array[()]  # a number, not an array of no dimensions

    @contextlib.contextmanager
    def watching(self, inputs: dict[str, Any]) -> Iterator[list[Misuse]]:
        arrays = {name: array for name, array in inputs.items() if isinstance(array, self.np.ndarray)}
        before = {name: (array.shape, array.strides, array.dtype) for name, array in arrays.items()}
        changes: list[Misuse] = []
        try:
            yield changes
        except ValueError as refused:
            if not any(word in str(refused) for word in ("read-only", "WRITEABLE")):
                raise
            line = next(
                (t.tb_lineno for t in _list_frames(refused) if t.tb_frame.f_globals.get("__name__") == "kernels"), None
            )
            raise Misuse(
                "input", f"an input is written{_at(line)}: {' and '.join(arrays)} belong{'s' * (len(arrays) == 1)} to the caller",
                "", line,
            ) from None  # fmt: skip
        for name, array in arrays.items():
            after = array.shape, array.strides, array.dtype
            for what, was, now in zip(("shape", "strides", "dtype"), before[name], after, strict=True):
                if was != now:
                    changes.append(Misuse("input", f"{name} is an input; its {what} was {was} and is {now} now", name))

    def make_array(self, numbers):
        return self.np.array(numbers)

    def take(self, view, value, t: dict) -> None:
        value = self.widen(value, t)
        if not t["shape"] and type(value) in (int, float):
            value = self.dtypes[t["dtype"]].type(value)
        kind = type(value)
        if kind is not self.np.ndarray and (t["shape"] or not issubclass(kind, self.np.generic)):
            kinds = {self.np.ndarray: "a subclass of np.ndarray, ", self.np.generic: "one number, "}
            what = next((words for base, words in kinds.items() if issubclass(kind, base)), "")
            self.refuse(t, f"{what}`{kind.__name__}`")
        if list(value.shape) != t["shape"] or not (
            value.dtype == view.dtype or (t["any_dtype"] and value.dtype.kind in "fiub")
        ):
            self.refuse(t, f"shape {_tuple(value.shape)}, {self.names.get(value.dtype, value.dtype)}")
        view[...] = value


def _list_frames(error: BaseException) -> list:
    """The traceback's entries, the innermost first."""
    found, at = [], error.__traceback__
    while at is not None:
        found.append(at)
        at = at.tb_next
    return found[::-1]


class _Torch(_Functions):
    noun = "tensor"
    guard: Guard | None = None  # of the file that runs

    def __init__(self):
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        self.torch = torch
        torch.set_num_threads(1)
        torch.ones(
            4, dtype=torch.float16
        ).float().mean()  # what PyTorch puts off until its first sum is done once, before the forks
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

        class InPlace(TorchDispatchMode):
            """Sees each operation that changes a tensor in place, also through ``.data``, which no version counts."""

            @classmethod
            def _should_skip_dynamo(cls) -> bool:
                return False  # a wrapper that keeps torch.compile out would import the compiler, which takes a second

            def __init__(self, owners: dict[int, str], changes: list[Misuse]):
                super().__init__()
                self.owners, self.changes = owners, changes

            def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                if _Torch.guard:
                    in_autograd = torch._C._current_graph_task_id() != -1
                    _Torch.guard.check_operation(operation._schema.name, in_autograd)
                schema = operation._schema
                if schema.is_mutable and not self.changes:
                    for position, parameter in enumerate(schema.arguments):
                        value = args[position] if position < len(args) else kwargs.get(parameter.name)
                        if parameter.is_write and isinstance(value, torch.Tensor):
                            name, line = self.owners.get(value.untyped_storage().data_ptr()), _find_learner()
                            if name is not None and line is not None:
                                words = f"{name} is an input and is changed in place{_at(line)}"
                                self.changes.append(Misuse("input", words, name, line))
                return operation(*args, **kwargs)

        self.in_place = InPlace

    @property
    def types(self) -> tuple[type, ...]:
        return (self.torch.Tensor,)

    def view(self, memory: bytearray, t: dict):
        flat = self.torch.frombuffer(
            memory,
            dtype=self.dtypes[t["dtype"]],
            offset=t["start"],
            count=(t["nbytes"] + t["offset"] - t["start"]) // t["itemsize"],
        )
        return flat.as_strided(t["shape"], t["strides"])

    @contextlib.contextmanager
    def watching(self, inputs: dict[str, Any]) -> Iterator[list[Misuse]]:
        before = {name: self.describe(tensor) for name, tensor in inputs.items()}
        changes: list[Misuse] = []
        with self.in_place({tensor.untyped_storage().data_ptr(): name for name, tensor in inputs.items()}, changes):
            yield changes
        for name, tensor in inputs.items():
            after = self.describe(tensor)
            changed = next((what for what, was in before[name].items() if was != after[what]), None)
            if changed in ("address", "version"):
                changes.append(Misuse("input", f"{name} is an input and is changed in place", name))
            elif changed is not None:
                words = f"{name} is an input; its {changed} was {before[name][changed]} and is {after[changed]} now"
                changes.append(Misuse("input", words, name))

    @staticmethod
    def describe(tensor) -> dict[str, Any]:
        """All of a tensor that a function could change, but for its values. The version counts changes of those, also of views."""
        return {
            "shape": tuple(tensor.shape), "strides": tensor.stride(), "dtype": tensor.dtype, "address": tensor.data_ptr(),
            "version": tensor._version,
        }  # fmt: skip

    def make_array(self, numbers):
        if any(type(number) is self.torch.Tensor for number in numbers):
            return self.torch.stack(tuple(numbers))
        return self.torch.tensor(numbers)

    def take(self, view, value, t: dict) -> None:
        value = self.widen(value, t)
        if not t["shape"] and type(value) in (int, float):
            value = self.torch.tensor(value, dtype=view.dtype)
        kind = type(value)
        if kind is not self.torch.Tensor:
            what = "a subclass of torch.Tensor, " if issubclass(kind, self.torch.Tensor) else ""
            self.refuse(t, f"{what}`{kind.__name__}`")
        if list(value.shape) != t["shape"] or not (
            value.dtype == view.dtype or (t["any_dtype"] and not value.is_complex())
        ):
            self.refuse(
                t,
                f"shape {_tuple(value.shape)}, {self.names.get(value.dtype, str(value.dtype).removeprefix('torch.'))}",
            )
        view.copy_(value)


def _autograd():
    _choose("cpu")
    # the learner's file imports it, when the course can no longer be read
    importlib.import_module("course_lib.norms.launchers")
    return importlib.import_module("course_lib.grading.execution.autograd_child").Autograd(
        _Torch(), WrongReturn, Misuse
    )


def _tests():
    return importlib.import_module("course_lib.grading.execution.tests_child").Tests(_Torch(), lambda: _Torch.guard)


def contiguous(shape: list[int]) -> tuple[int, ...]:
    return (*shape[1:], 1) if len(shape) == 2 else (1,)


def pack(tensor: dict) -> tuple[int, ...]:
    """The strides of a far tensor's bytes as they travel: rows follow one another, or columns if they lie far apart."""
    shape, strides = tensor["shape"], tensor["strides"]
    return (shape[1], 1) if strides[0] >= strides[1] else (1, shape[0])


def _described(error: BaseException, file: str, lost: bool = False) -> bytes:
    """The exception under Triton's wrappers, and the last line of the learner's file it went through, with the part of it."""
    chain = [error]
    while chain[-1].__cause__ is not None and len(chain) < 20:
        chain.append(chain[-1].__cause__)
    line = column = end_column = None
    for link in chain:
        for frame in traceback.extract_tb(link.__traceback__):
            if frame.filename == file:
                line, column = frame.lineno, frame.colno
                end_column = frame.end_colno if frame.end_lineno == line else None
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if node is not None and source is not None and hasattr(node, "lineno"):
            # a compiler error counts lines from the function's own
            line, column, end_column = _line_of(source, node.lineno, file) or line, None, None
    text = chain[-1].args[0] if chain[-1].args and isinstance(chain[-1].args[0], str) else str(chain[-1])
    text = text[-4000:].encode("utf-8", "replace").decode()  # a lone surrogate could not be printed or saved
    fault = (
        {name: getattr(error, name) for name in ("kind", "tensor", "row", "line")}
        if type(error).__name__ in ("OutOfBounds", "Interleaved", "Misuse")
        else None
    )
    return json.dumps(
        {
            "type": type(chain[-1]).__name__, "text": text, "fault": fault, "lost": lost,
            "line": line, "column": column, "end_column": end_column,
        }
    ).encode()  # fmt: skip


def _describe_refused(refused: Unreadable) -> bytes:
    """What the file uses, and the exercise is not open to, in the form of an exception."""
    line, column, end_column = refused.span or (None, None, None)
    fault = {"kind": refused.cause, "tensor": "", "row": None, "line": line}
    return json.dumps(
        {
            "type": REFUSED, "text": refused.what, "fault": fault, "lost": False, "line": line, "column": column, "end_column": end_column,
        }
    ).encode()  # fmt: skip


def _line_of(function: str, offset: int, file: str) -> int | None:
    """The line in ``file`` of line ``offset`` (from 1) of ``function``'s text."""
    whole = Path(file).read_text()
    at = whole.find(function.strip())
    return whole[:at].count("\n") + offset if at >= 0 else None
