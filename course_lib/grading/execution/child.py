"""Runs a learner's kernel, or function, on raw bytes and decides nothing.

The last process of the chain that ``server.py`` makes, confined before it gets here. It knows no exercise: the job names an
entry point, a grid and the arguments of each case; ``NN.in`` holds the case's buffers one after the other, and ``NN.out`` gets
them back. What happened on the way goes to ``NN.error``. The parent takes only the bytes for evidence.
"""

from __future__ import annotations

import abc
import contextlib
import importlib
import importlib.util
import json
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from course_lib.sandbox import isolation
from course_lib.sandbox.machine import Machine, begin_case, write_whole

_MAX_STEPS = 20_000  # of one interleaved launch; an exercise's takes a few hundred
_GPU_FRACTION = 0.9  # of its memory: whatever else the person runs there keeps going


def make_machine(mode: str) -> Machine:
    """What runs cases in ``mode``: "cpu" (kernels, interpreted), "gpu" (compiled), "torch", "numpy" or "autograd" (functions)."""
    make = {"cpu": _Interpreter, "gpu": _Gpu, "torch": _Torch, "numpy": _NumPy, "autograd": _autograd}[mode]
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
    try:
        kernels = _imported(file)
    except BaseException as error:
        write_whole(folder / "import.error", _described(error, str(file)))
        return
    for number, case in enumerate(job["cases"]):
        begin_case(folder, number)
        if number in job["left_out"]:
            continue
        try:
            data = runs.run(getattr(kernels, case["entry_point"]), case, (folder / f"{number:02}.in").read_bytes())
        except BaseException as error:
            sys.stdout.flush()
            lost = runs.lost(error)
            write_whole(folder / f"{number:02}.error", _described(error, str(file), lost))
            if lost:
                return
        else:
            sys.stdout.flush()
            excess = getattr(runs, "excess", None)
            if excess is not None:
                write_whole(folder / f"{number:02}.error", _described(excess, str(file)))
            write_whole(folder / f"{number:02}.out", data)


def _imported(file: Path):
    described = importlib.util.spec_from_file_location("kernels", file)
    assert described is not None and described.loader is not None  # a file that ends in .py has both
    module = importlib.util.module_from_spec(described)
    sys.modules["kernels"] = module  # Triton looks a kernel's module up by its name
    described.loader.exec_module(module)
    return module


def far_bytes(case: dict) -> int:
    """Address space that the case's far tensors take."""
    return sum(2 * _reach(tensor) for tensor in case["tensors"] if tensor["far"])


def _reach(tensor: dict) -> int:
    return (tensor["shape"][0] - 1) * tensor["strides"][0] * tensor["itemsize"] + 2**20


def _choose(mode: str) -> None:
    """Between the interpreter, mended, and the compiler: before anything imports Triton."""
    import course_lib

    chosen = course_lib.MODE
    if chosen != mode:
        raise RuntimeError(f"this process is in {chosen} mode")


class _Interpreter:
    """Cases on Triton's interpreter, over NumPy memory; PyTorch is not imported."""

    def __init__(self):
        _choose("cpu")
        from course_lib.interpreter import bounds, hooks, launch, schedule

        # NumPy's warnings of a NaN or an overflow in the interpreter's own lines: nobody printed them, and the values are judged
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter|course_lib\.interpreter"
        )
        self.launch, self.bounds, self.schedule, self.hooks = launch, bounds, schedule, hooks
        self.excess: Excess | None = None  # of the last case
        try:
            hooks.patch()
            self.checked, self.observing = bounds.checked, hooks.observing
        except AttributeError:
            # an untested Triton: the guards around outputs still show a write, `course doctor` names the loss
            self.checked = self.observing = contextlib.nullcontext

    def run(self, kernel, case: dict, data: bytes) -> bytes:
        self.excess = None
        if not case["interleavings"]:
            return self.once(kernel, case, data)
        runs = [self.once(kernel, case, data, seed) for seed in range(case["interleavings"])]
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
        reads = _Reads(case, regions, self.hooks.line_of_kernel)
        with self.checked(regions), self.observing(reads):
            if seed is None:
                self.launch.launch(kernel, case["grid"], arguments, case["constexprs"])
            else:
                self.interleaved(kernel, case, arguments, seed)
        self.excess = self.excess or reads.excess()
        for apart in far:
            apart.collect(memory)
        return memory.tobytes()

    def interleaved(self, kernel, case: dict, arguments: list, seed: int) -> None:
        outcome = self.schedule.run(
            kernel, tuple(case["grid"]), *arguments, seed=seed, max_steps=_MAX_STEPS, **case["constexprs"]
        )
        if outcome.races:
            race = outcome.races[0]
            raise Interleaved("race", race.message, race.where.split("[")[0], race.second.line)
        if outcome.deadlock:
            raise Interleaved("deadlock", outcome.deadlock.message, "", outcome.deadlock.waits[0].step.line)
        if outcome.limit:
            raise Interleaved("livelock", outcome.limit, "", None)
        if outcome.no_barrier:
            found = outcome.no_barrier[0]
            raise Interleaved(
                "no barrier", found.message, found.where.split("[")[0], (found.release or found.first).line
            )

    def lost(self, error: BaseException) -> bool:
        return not isinstance(error, Exception)


class Interleaved(Exception):
    """What only another order of the programs shows: ``kind`` is "race", "deadlock", "livelock", "no barrier" or "order"."""

    def __init__(self, kind: str, message: str, tensor: str, line: int | None):
        super().__init__(message)
        self.kind, self.tensor, self.row, self.line = kind, tensor, None, line


class Excess(Exception):
    """A tensor was loaded more often than its plan allows. Not raised: the case goes on, and its values count first."""

    def __init__(self, message: str, tensor: str, line: int | None):
        super().__init__(message)
        self.kind, self.tensor, self.row, self.line = "reads", tensor, None, line


class _Reads:
    """Counts the elements that a launch loads, lane by lane; masked lanes load nothing."""

    def __init__(self, case: dict, regions: list, line_of_kernel):
        self.allowed, self.line_of_kernel = case["reads"], line_of_kernel
        self.regions = [region for region in regions if region.name in self.allowed]
        self.lanes: dict[str, dict[int | None, int]] = {region.name: {} for region in self.regions}

    def __call__(self, access) -> None:
        if access.kind != "load" or not self.regions or not access.mask.any():
            return
        first = int(access.live()[0])
        for region in self.regions:
            if region.low <= first <= region.high:
                _, line = self.line_of_kernel() or (None, None)
                lines = self.lanes[region.name]
                lines[line] = lines.get(line, 0) + int(access.mask.sum())

    def excess(self) -> Excess | None:
        """The first tensor that was loaded too often. One element a row is free: some algorithms look at a row's first."""
        for region in self.regions:
            lines, allowed = self.lanes[region.name], self.allowed[region.name]
            total = sum(lines.values())
            if total <= allowed * region.elements + region.shape[0]:
                continue
            at = sorted(line for line in lines if line is not None)
            where = f", at line{'s' * (len(at) > 1)} {', '.join(map(str, at))}" if at else ""
            asked = {0: "it need not be read at all", 1: "the exercise asks for once"}.get(
                allowed, f"the exercise asks for {allowed} times"
            )
            return Excess(
                f"{region.name} is read {total / region.elements:.1f} times{where}; {asked}",
                region.name,
                at[-1] if at else None,
            )
        return None


class Unplaceable(Exception):
    """This GPU has no room for rows 2^30 elements apart. Not the kernel's fault: the interpreter has to do for the case."""


class _Far:
    """Rows 2^30 elements apart, in address space that takes memory only where it is touched.

    The mapping reaches as far below the tensor as above it: an offset that overflowed to a negative number then reads
    zeros, and the case fails by its values instead of taking the process down.
    """

    def __init__(self, tensor: dict, memory):
        import numpy as np

        reach = _reach(tensor)
        self.mapping = isolation.reserve(2 * reach)
        self.bytes = np.frombuffer(self.mapping, dtype=np.uint8)
        self.address = self.bytes.ctypes.data + reach
        width, apart = tensor["shape"][1] * tensor["itemsize"], tensor["strides"][0] * tensor["itemsize"]
        self.rows = [(reach + r * apart, tensor["start"] + r * width, width) for r in range(tensor["shape"][0])]
        for there, here, size in self.rows:
            self.bytes[there : there + size] = memory[here : here + size]

    def collect(self, memory) -> None:
        for there, here, size in self.rows:
            memory[here : here + size] = self.bytes[there : there + size]


class _Gpu:
    """Cases compiled, on the first GPU."""

    def __init__(self):
        import torch
        import triton.language  # noqa: F401 - imported before the forks

        self.torch = torch
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32}

    def open_device(self) -> None:
        """Make a context on the GPU: one that does not answer is found before the learner's code is looked at."""
        _choose("gpu")  # asks the GPU, too
        self.torch.cuda.set_per_process_memory_fraction(_GPU_FRACTION)
        self.torch.zeros(1, device="cuda")

    def run(self, kernel, case: dict, data: bytes) -> bytes:
        torch = self.torch
        memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        # one allocation a tensor: neighbours on the device are then not the case's own tensors
        buffers = {t["name"]: memory[t["offset"] : t["offset"] + t["nbytes"]].cuda() for t in case["tensors"]}
        views, far = {}, []
        for t in case["tensors"]:
            dtype, skip = self.dtypes[t["dtype"]], (t["start"] - t["offset"]) // t["itemsize"]
            flat = buffers[t["name"]].view(dtype)
            views[t["name"]] = flat.as_strided(t["shape"], contiguous(t["shape"]) if t["far"] else t["strides"], skip)
            if t["far"]:
                try:
                    storage = torch.empty((t["shape"][0] - 1) * t["strides"][0] + 2**20, dtype=dtype, device="cuda")
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


class _Functions(abc.ABC):
    """Cases that call a plain function: tensors in, one tensor or a tuple of them out."""

    def run(self, function, case: dict, data: bytes) -> bytes:
        memory = bytearray(data)
        views = {t["name"]: self.view(memory, t) for t in case["tensors"]}
        make = {"tensor": views.__getitem__, "int": int, "float": float}
        returned = function(*[make[kind](value) for kind, value in case["arguments"]])
        wanted = [t for t in case["tensors"] if t["output"]]
        values = returned if isinstance(returned, (tuple, list)) else () if returned is None else (returned,)
        if len(values) != len(wanted):
            names = ", ".join(t["name"] for t in wanted)
            got = "None" if returned is None else f"{len(values)} value" + "s" * (len(values) != 1)
            raise WrongReturn(f"`{case['entry_point']}` returned {got}; asked for: {names}")
        for t, value in zip(wanted, values, strict=True):
            self.take(views[t["name"]], value, t)
        return bytes(memory)

    @abc.abstractmethod
    def view(self, memory: bytearray, t: dict) -> Any:
        """The tensor or array that lies over ``memory`` where the description ``t`` says."""

    @abc.abstractmethod
    def take(self, view: Any, value: Any, t: dict) -> None:
        """Copy a returned value into its view.

        Raises: WrongReturn if it has another type, shape or dtype than asked for.
        """

    def lost(self, error: BaseException) -> bool:
        return not isinstance(error, Exception)

    @staticmethod
    def refuse(t: dict, got: str) -> None:
        shape = f"shape {_tuple(t['shape'])}" if t["shape"] else "one number"
        raise WrongReturn(f"{t['name']} came back as {got}; asked for: {shape}, {t['dtype']}")


def _tuple(shape) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


class _NumPy(_Functions):
    def __init__(self):
        import ml_dtypes
        import numpy as np

        self.np = np
        self.dtypes = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    def view(self, memory: bytearray, t: dict):
        flat = self.np.frombuffer(
            memory,
            dtype=self.dtypes[t["dtype"]],
            offset=t["start"],
            count=(t["nbytes"] + t["offset"] - t["start"]) // t["itemsize"],
        )
        array = self.np.lib.stride_tricks.as_strided(
            flat, t["shape"], [stride * t["itemsize"] for stride in t["strides"]]
        )
        return array if t["shape"] or t["output"] else array[()]  # a number, not an array of no dimensions

    def take(self, view, value, t: dict) -> None:
        if not t["shape"] and isinstance(value, (int, float)):
            value = self.dtypes[t["dtype"]].type(value)
        if not isinstance(value, (self.np.ndarray, self.np.generic)):
            self.refuse(t, f"`{type(value).__name__}`")
        if list(value.shape) != t["shape"] or value.dtype != view.dtype:
            self.refuse(t, f"shape {_tuple(value.shape)}, {self.names.get(value.dtype, value.dtype)}")
        view[...] = value


class _Torch(_Functions):
    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(1)
        torch.ones(
            4, dtype=torch.float16
        ).float().mean()  # what PyTorch puts off until its first sum is done once, before the forks
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    def view(self, memory: bytearray, t: dict):
        flat = self.torch.frombuffer(
            memory,
            dtype=self.dtypes[t["dtype"]],
            offset=t["start"],
            count=(t["nbytes"] + t["offset"] - t["start"]) // t["itemsize"],
        )
        return flat.as_strided(t["shape"], t["strides"])

    def take(self, view, value, t: dict) -> None:
        if not t["shape"] and isinstance(value, (int, float)):
            value = self.torch.tensor(value, dtype=view.dtype)
        if not isinstance(value, self.torch.Tensor):
            self.refuse(t, f"`{type(value).__name__}`")
        if list(value.shape) != t["shape"] or value.dtype != view.dtype:
            self.refuse(
                t,
                f"shape {_tuple(value.shape)}, {self.names.get(value.dtype, str(value.dtype).removeprefix('torch.'))}",
            )
        view.copy_(value)


def _autograd():
    _choose("cpu")
    # the learner's file imports it, when the course can no longer be read
    importlib.import_module("course_lib.norms.launchers")
    return importlib.import_module("course_lib.grading.execution.autograd_child").Autograd(_Torch(), WrongReturn)


def contiguous(shape: list[int]) -> tuple[int, ...]:
    return (*shape[1:], 1) if len(shape) == 2 else (1,)


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
        if type(error).__name__ in ("OutOfBounds", "Interleaved", "Excess")
        else None
    )
    return json.dumps(
        {
            "type": type(chain[-1]).__name__, "text": text, "fault": fault, "lost": lost,
            "line": line, "column": column, "end_column": end_column,
        }
    ).encode()  # fmt: skip


def _line_of(function: str, offset: int, file: str) -> int | None:
    """The line in ``file`` of line ``offset`` (from 1) of ``function``'s text."""
    whole = Path(file).read_text()
    at = whole.find(function.strip())
    return whole[:at].count("\n") + offset if at >= 0 else None
