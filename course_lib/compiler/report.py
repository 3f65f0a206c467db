"""What the compiler makes of a kernel: registers, spills, access widths, PTX and SASS, on a machine without a GPU.

A process whose Triton interprets cannot compile, so a helper process does it (compile_server.py). It starts with the
first report, stays warm, and ends with this process. The interpreter runs kernels that the compiler refuses; here they
end as a CompileError with the line and one sentence.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import inspect
import itertools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from course_lib.base import paths
from course_lib.base.errors import CourseError

_SERVER = Path(__file__).with_name("server.py")
_START_SECONDS = 60.0
_LOG_CHARACTERS = 2000


class CompileError(CourseError):
    """The compiler refuses the kernel, or does not survive it.

    ``cause`` is a stable identifier ("plain_global", "loop_carried_type", ..., "crash", "timeout", "other"), ``sentence``
    what is wrong, ``file``, ``line`` and ``column`` (both from 1) where, ``quoted`` the line itself.
    """

    def __init__(self, cause: str, sentence: str, file: str, line: int, column: int, quoted: str):
        self.cause, self.sentence, self.file, self.line, self.column, self.quoted = cause, sentence, file, line, column, quoted
        super().__init__(f"{file}, line {line}: {sentence}.\n    {quoted}" if quoted else f"{file}, line {line}: {sentence}.")


@dataclass(frozen=True)
class Pointer:
    """A tensor argument without the tensor. ``dtype`` is Triton's name or PyTorch's; ``aligned``: to 16 bytes."""

    dtype: str
    aligned: bool = True


@dataclass(frozen=True)
class KernelSource:
    """The text of a whole kernels file; ``name`` is the kernel's, ``first_line`` the number of the text's first line in ``file``."""

    text: str
    name: str
    file: str | Path
    first_line: int = 1


@dataclass(frozen=True)
class Lines:
    """Numbers, from 1, of the lines of ``ptx`` and ``sass`` that one line of the kernel became."""

    ptx: tuple[int, ...]
    sass: tuple[int, ...]


@dataclass(frozen=True)
class CompileReport:
    """What the compiler made of a kernel.

    ``registers`` are per thread. ``spill_bytes`` is the stack of a thread in local memory: 0 for a kernel that fits its
    registers. ``shared_bytes`` are per program. ``loads`` and ``stores`` count the instructions on global memory by the
    bytes each moves for a thread, a loop's body once; they and ``sass`` are None if the report was asked for without.
    ``lines`` goes from a line of the kernel's file to lines of PTX and SASS; what is inlined there (a ``tl.sum``, a jitted
    helper) belongs to the line that calls it. ``seconds`` is the helper's time.
    """

    kernel: str
    arch: str
    num_warps: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    loads: dict[int, int] | None
    stores: dict[int, int] | None
    ptx: str
    sass: str | None
    ttir: str
    ttgir: str
    lines: dict[int, Lines]
    seconds: float


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor of an architecture holds; ``reserved`` bytes of shared memory a program are the system's own."""

    warps: int
    programs: int
    shared_bytes: int
    shared_bytes_a_program: int
    reserved: int
    registers: int = 65536


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
LIMITS = {
    "sm_75": Limits(warps=32, programs=16, shared_bytes=64 << 10, shared_bytes_a_program=64 << 10, reserved=0),
    "sm_80": Limits(warps=64, programs=32, shared_bytes=164 << 10, shared_bytes_a_program=163 << 10, reserved=1024),
    "sm_86": Limits(warps=48, programs=16, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024),
    "sm_89": Limits(warps=48, programs=24, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024),
    "sm_90": Limits(warps=64, programs=32, shared_bytes=228 << 10, shared_bytes_a_program=227 << 10, reserved=1024),
    "sm_100": Limits(warps=64, programs=32, shared_bytes=228 << 10, shared_bytes_a_program=227 << 10, reserved=1024),
    "sm_120": Limits(warps=48, programs=24, shared_bytes=100 << 10, shared_bytes_a_program=99 << 10, reserved=1024),
}
_PARTITIONS = 4  # a multiprocessor's register file is four files, each for the warps of its own scheduler
_WARP_REGISTERS = 256  # a warp gets its registers in pieces of this many
_SHARED_PIECE = {"sm_75": 256}
_LATER_SHARED_PIECE = 128


def occupancy(arch: str, registers: int, shared: int, num_warps: int) -> int:
    """Warps that are resident on one multiprocessor at a time; 0 if a program does not fit at all.

    Args: registers per thread, shared bytes per program, warps per program.

    Raises: CourseError for an architecture that is not in LIMITS.
    """
    return residency(arch, registers, shared, num_warps).warps


@dataclass(frozen=True)
class Residency:
    """How many programs of ``num_warps`` warps one multiprocessor holds at a time, by what each of its resources has room for.

    ``programs`` has the keys "warps", "programs", "registers" and "shared memory"; ``most`` is the multiprocessor's warps.
    """

    num_warps: int
    most: int
    programs: Mapping[str, int]

    @property
    def warps(self) -> int:
        return min(self.programs.values()) * self.num_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What has room for the fewest programs; empty where every warp of the multiprocessor is taken."""
        fewest = min(self.programs.values())
        return () if self.warps == self.most else tuple(name for name, count in self.programs.items() if count == fewest)


def residency(arch: str, registers: int, shared: int, num_warps: int) -> Residency:
    """The programs that warps, programs, registers and shared memory each leave room for on one multiprocessor.

    Args: registers per thread, shared bytes per program, warps per program.

    Registers go to a warp in pieces of 256 and come from one of four register files; shared memory goes to a program in
    pieces of 128 bytes (256 on sm_75), 1 KB of it taken by the system from sm_80 on. The allocation rules are those of
    ``cuda_occupancy.h`` in the CUDA toolkit.

    Raises: CourseError for an architecture that is not in LIMITS.
    """
    limits = _limits(arch)
    if num_warps < 1 or registers < 0 or shared < 0:
        raise ValueError(
            f"registers={registers}, shared={shared}, num_warps={num_warps}: a program has 1 warp or more, and no negative sizes"
        )
    a_warp = _round_up(registers * 32, _WARP_REGISTERS)
    if registers > 255 or a_warp * _round_up(num_warps, _PARTITIONS) > limits.registers:
        by_registers = 0
    else:
        by_registers = limits.registers // _PARTITIONS // a_warp * _PARTITIONS // num_warps if a_warp else limits.programs
    taken = _round_up(shared + limits.reserved, _SHARED_PIECE.get(arch, _LATER_SHARED_PIECE))
    by_shared = limits.shared_bytes // taken if taken else limits.programs
    if shared > limits.shared_bytes_a_program:
        by_shared = 0
    programs = {
        "warps": limits.warps // num_warps, "programs": limits.programs, "registers": by_registers, "shared memory": by_shared,
    }  # fmt: skip
    return Residency(num_warps, limits.warps, programs)


def _limits(arch: str) -> Limits:
    if arch not in LIMITS:
        raise CourseError(f"the architecture {arch!r} is not one the course knows; it can be {', '.join(LIMITS)}.")
    return LIMITS[arch]


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def compile_report(
    kernel,
    arguments: Mapping[str, object] | Sequence[object],
    constexprs: Mapping[str, object] | None = None,
    *,
    num_warps: int = 4,
    num_stages: int | None = None,
    maxnreg: int | None = None,
    arch: str = "sm_90",
    disassemble: bool = True,
    limit: float = 60.0,
) -> CompileReport:
    """Compile a kernel for ``arch``, as a launch with these arguments would.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        arguments: by name, or in the kernel's order: tensors, Pointer, int, float, bool, None. They are specialised
            as the launcher does it: addresses and integers divisible by 16 are known to be, 1 and None become
            constants, a large integer is an i64, a float an fp32.
        constexprs: the kernel's tl.constexpr arguments by name.
        num_stages: None for Triton's default.
        maxnreg: registers that a thread may have at most; None leaves it to the compiler.
        disassemble: False leaves out SASS, loads and stores, and with them most of the time of a small kernel.
        limit: seconds; a compiler that takes longer is ended.

    Raises: CompileError if the compiler refuses the kernel, crashes on it, or takes too long; CourseError if the kernel has
    no source text, an option is impossible, the helper process does not start, or Triton's ptxas cannot run here; TypeError for an argument of another kind.
    """
    _limits(arch)
    if num_warps not in (1, 2, 4, 8, 16, 32):
        raise CourseError(f"num_warps is {num_warps!r}; a program has 1, 2, 4, 8, 16 or 32 warps.")
    collected = _from_text(kernel) if isinstance(kernel, KernelSource) else _Collector(kernel)
    positional, named = ([], arguments) if isinstance(arguments, Mapping) else (arguments, {})
    job = {
        "name": collected.name,
        "units": collected.units,
        "positional": [_argument(value) for value in positional],
        "named": {name: _argument(value) for name, value in named.items()}
        | {name: _constant(value) for name, value in (constexprs or {}).items()},
        "num_warps": num_warps, "num_stages": num_stages, "maxnreg": maxnreg, "arch": int(arch.removeprefix("sm_")), "disassemble": disassemble,
    }  # fmt: skip
    try:
        answer = _helper.ask(job, limit)
    except _Crashed as crash:
        collected.fail(crash.cause, str(crash), 0, collected.kernel_line, 0)
    if "error" in answer:
        error = answer["error"]
        if error["cause"] == "no_tool":
            raise CourseError(error["sentence"])
        collected.fail(error["cause"], error["sentence"], error["unit"], error["line"], error["column"])
    made = answer["report"]
    by_width = {name: made[name] and {int(width): count for width, count in made[name].items()} for name in ("loads", "stores")}
    lines = {number: Lines(tuple(ptx), tuple(sass)) for number, ptx, sass in made["lines"]}
    return CompileReport(**made | by_width | {"kernel": collected.name, "arch": arch, "num_warps": num_warps, "lines": lines})


def source_text(kernel) -> KernelSource:
    """The text of a kernel as :func:`compile_report` takes it, and where it stands; its line numbers are those of ``lines``.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource, which is cut down to the function.

    Raises: CourseError if the source text cannot be found; TypeError for what is no kernel.
    """
    if not isinstance(kernel, KernelSource):
        collected = _Collector(kernel)
        unit = collected.units[0]
        return KernelSource(unit["text"].rstrip("\n"), collected.name, collected.files[0], unit["first_line"])
    text = kernel.text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # the compiler says what is wrong with it; the text is shown whole
        return KernelSource(text.rstrip("\n"), kernel.name, kernel.file, kernel.first_line)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.name:
            lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
            return KernelSource("\n".join(lines), kernel.name, kernel.file, kernel.first_line + node.lineno - 1)
    return KernelSource(text.rstrip("\n"), kernel.name, kernel.file, kernel.first_line)


def units_of(kernel) -> list[dict]:
    """A kernel as the texts that run it in another process: its own first, then those of the jitted functions it calls.

    The descriptions are those that ``compile_server.Units`` loads. Each has one more key here, ``file``, as a person knows it.

    Raises: CourseError if a source text cannot be found; TypeError for what is no kernel.
    """
    collected = _from_text(kernel) if isinstance(kernel, KernelSource) else _Collector(kernel)
    return [unit | {"file": file} for unit, file in zip(collected.units, collected.files, strict=True)]


def described(value) -> dict:
    """A constant of a kernel (a number, a bool, None, text, a tl.dtype) as ``compile_server.Units.decode`` takes it.

    Raises: TypeError for a value of another kind.
    """
    return _constant(value)


def warm() -> None:
    """Start the helper process now, so that the first report need not wait for it.

    Raises: CourseError if it does not start.
    """
    _helper.warm()


class _Units:
    """Source texts for the helper, and how to name their files to a person."""

    def __init__(self, name: str):
        self.name, self.units, self.files, self.indents, self.kernel_line = name, [], [], [], 1

    def fail(self, cause: str, sentence: str, unit: int, line: int, column: int) -> NoReturn:
        texts = self.units[unit]["text"].split("\n")
        at = line - self.units[unit]["first_line"]
        quoted = texts[at].strip() if 0 <= at < len(texts) else ""
        raise CompileError(cause, sentence, self.files[unit], line, column + self.indents[unit] + 1, quoted) from None


def _from_text(kernel: KernelSource) -> _Units:
    units = _Units(kernel.name)
    # the lines that Python counts; the helper pads what stands before the first
    text = kernel.text.replace("\r\n", "\n").replace("\r", "\n")
    units.units.append({"name": kernel.name, "text": text, "first_line": kernel.first_line, "globals": {}, "jit": None})
    units.files.append(str(kernel.file))
    units.indents.append(0)
    units.kernel_line = kernel.first_line + next(
        (number for number, line in enumerate(text.split("\n")) if line.startswith(f"def {kernel.name}(")), 0
    )
    return units


class _Collector(_Units):
    """A @triton.jit function as source text: its own, that of the jitted functions it calls, and the globals they name."""

    def __init__(self, kernel):
        from triton.runtime.jit import KernelInterface

        self.jitted = KernelInterface
        if not isinstance(kernel, KernelInterface):
            raise TypeError(f"{kernel!r} is no kernel; pass a @triton.jit function or a KernelSource")
        self.numbers: dict[int, int] = {}
        function, _ = _innermost(kernel)
        super().__init__(function.__name__)
        self.add(kernel)
        self.kernel_line = self.units[0]["first_line"]

    def add(self, kernel) -> int:
        """The number of the function's unit, which is added the first time it is met."""
        function, wrapper = _innermost(kernel)
        if id(function) in self.numbers:
            return self.numbers[id(function)]
        text, first_line, indent = _definition(function, wrapper)
        number = self.numbers[id(function)] = len(self.units)
        unit = {"name": function.__name__, "text": text, "first_line": first_line, "globals": {}, "jit": _jit_options(wrapper)}
        self.units.append(unit)
        self.files.append(_shown(function.__code__.co_filename))
        self.indents.append(indent)
        known = dict(function.__globals__)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        known |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        tree = ast.parse(text)
        used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & known.keys())
        unit["globals"] = {name: self.describe(known[name], name, tree) for name in used}
        return number

    def describe(self, value, name: str, tree: ast.AST) -> dict:
        """A global for the helper. Of a module that is not Triton's go only the attributes that the kernel names."""
        if isinstance(value, types.ModuleType):
            if value.__name__.split(".")[0] in ("triton", "math", "numpy"):
                return {"module": value.__name__}
            names = {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == name
                and hasattr(value, node.attr)
            }
            inner = {attribute: self.describe(getattr(value, attribute), "", tree) for attribute in sorted(names)}
            return {"namespace": {"name": value.__name__, "names": inner}}
        function = _innermost(value)[0] if isinstance(value, self.jitted) else value
        module = getattr(function, "__module__", None) or ""
        if isinstance(module, str) and module.split(".")[0] == "triton" and hasattr(function, "__qualname__"):
            return {"triton": [module, function.__qualname__]}
        if isinstance(value, self.jitted):
            return {"jit": self.add(value)}
        return _constant(value, strict=False)


def _innermost(kernel) -> tuple[types.FunctionType, object]:
    """The Python function under ``@triton.jit`` and whatever stands above it (autotune, heuristics), and its jit wrapper."""
    wrapper = kernel
    while not isinstance(wrapper.fn, types.FunctionType):
        wrapper = wrapper.fn
    return wrapper.fn, wrapper


def _definition(function: types.FunctionType, wrapper) -> tuple[str, int, int]:
    """The text of a function from its ``def`` on, the number of that line, and by how much it was indented."""
    try:
        raw, first_line = inspect.getsourcelines(function)
    except OSError:
        raise CourseError(
            f"the source text of `{function.__name__}` cannot be found, and the compiler works on text. Define the kernel in a file or in a notebook cell."
        ) from None
    raw = getattr(wrapper, "raw_src", raw)  # as it was when decorated; a file may have changed since
    text = textwrap.dedent("".join(raw))
    below_decorators = ast.parse(text).body[0].lineno - 1
    indent = len(raw[0]) - len(raw[0].lstrip())
    return "\n".join(text.split("\n")[below_decorators:]), first_line + below_decorators, indent


def _jit_options(wrapper) -> dict:
    """What ``@triton.jit(...)`` was given that changes the code; interpreted functions keep it in ``kwargs``."""
    given = getattr(wrapper, "kwargs", None) or vars(wrapper)
    names = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")
    return {name: list(value) if isinstance(value, tuple) else value for name in names if (value := given.get(name))}


def _is_filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _shown(filename: str) -> str:
    if "ipykernel_" in filename or filename.startswith("<"):
        return "this cell"
    return paths.shown(Path(filename))


def _argument(value) -> dict:
    if isinstance(value, Pointer):
        return {"pointer": {"dtype": _TORCH_NAMES.get(value.dtype, value.dtype), "address": 0 if value.aligned else 2}}
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return {"pointer": {"dtype": str(value.dtype).split(".")[-1], "address": value.data_ptr() % 16}}
    return _constant(value)


# names of Triton that PyTorch spells in another way; the launcher looks at PyTorch's
_TORCH_NAMES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}, **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip


def _constant(value, strict: bool = True) -> dict:
    """A value for the helper; if not ``strict``, what cannot go there goes by its type's name.

    Raises: TypeError if strict and the value cannot go there.
    """
    if type(value) in (bool, int, float, str) or value is None:
        return {"value": value}
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if kind == "triton.language.core.constexpr":
        return {"constexpr": _constant(value.value, strict)}
    if kind == "triton.language.core.dtype":
        return {"dtype": value.name}
    if kind.startswith("numpy.") and hasattr(value, "item") and getattr(value, "shape", None) == ():
        if strict:
            return _constant(value.item())
        return {"opaque": type(value).__name__}
    if strict:
        raise TypeError(f"{value!r} is no argument of a kernel that can be described: pass a tensor, a Pointer, a number, a bool or None")
    return {"opaque": type(value).__name__}


class _Crashed(Exception):
    """The helper did not survive the job; ``cause`` is "crash" or "timeout"."""

    def __init__(self, cause: str, sentence: str):
        super().__init__(sentence)
        self.cause = cause


class _Helper:
    """The helper process: one job at a time, whichever thread asks; started when it is needed and is not there."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process: subprocess.Popen | None = None
        self.folder: Path | None = None
        self.owner: int | None = None  # the process that started it: a fork must not talk through the same pipes
        self.received = bytearray()
        self.ids = itertools.count()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def ask(self, job: dict, limit: float) -> dict:
        """The answer to a job.

        Raises: _Crashed; CourseError if the helper does not start.
        """
        with self.lock:
            self._be_there()
            number = next(self.ids)
            line = json.dumps(job | {"id": number}).encode() + b"\n"
            try:
                self._send(line)
                answer = self._receive(limit)
                if answer.get("id") != number:
                    raise CourseError("the compiler's helper process answers out of turn. Ask again; it is started anew.")
            except TimeoutError:
                self.stop()
                raise _Crashed(
                    "timeout",
                    f"compiling takes longer than {limit:g} seconds, and was ended; does `tl.static_range` unroll too much, or BLOCK hold too many elements",
                ) from None
            except (EOFError, BrokenPipeError):
                code = self._exit_code()
                self.stop()
                raise _Crashed(
                    "crash", f"the compiler itself crashed on this kernel ({_ending(code)}); change the lines you wrote last"
                ) from None
            except BaseException:  # an interrupt: what the helper still works on is no answer to the next job
                self.stop()
                raise
            return answer

    def warm(self) -> None:
        """Start it if it is not there.

        Raises: CourseError if it does not start.
        """
        with self.lock:
            self._be_there()

    def _be_there(self) -> None:
        if self.owner != os.getpid():
            self.process = self.folder = None
        elif self.process is not None and self.process.poll() is not None:
            self.stop()
        if self.process is None:
            self._start()

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="course-compile-"))
        self.owner = os.getpid()
        self.received.clear()
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        environment |= {"TRITON_CACHE_DIR": str(self.folder / "cache"), "TMPDIR": str(self.folder)}
        try:
            with (self.folder / "log").open("ab") as log:
                # -P: beside the script lie modules of the course with names that the standard library may have
                self.process = subprocess.Popen(
                    [sys.executable, "-P", str(_SERVER), str(self.folder)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self.folder, env=environment, start_new_session=True,
                )  # fmt: skip
            self._receive(_START_SECONDS)
        except BaseException as error:
            printed = self._log()
            self.stop()
            if not isinstance(error, (EOFError, TimeoutError, OSError)):
                raise
            raise CourseError(
                f"the compiler's helper process does not start ({error or 'it ended at once'}). Is Triton installed in {sys.executable}? "
                f"`course doctor` looks. It said:\n{printed}"
            ) from None

    def _send(self, line: bytes) -> None:
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def _receive(self, limit: float) -> dict:
        """The next line. Raises: EOFError; TimeoutError after ``limit`` seconds."""
        end = time.monotonic() + limit
        out = self.process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"\n" not in self.received[-65536:]:
                if not selector.select(max(end - time.monotonic(), 0)):
                    raise TimeoutError(f"nothing within {limit:g} seconds")
                data = os.read(out, 65536)
                if not data:
                    raise EOFError
                self.received += data
        line, _, rest = bytes(self.received).partition(b"\n")
        self.received = bytearray(rest)
        return json.loads(line)

    def _exit_code(self) -> int | None:
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return None

    def _log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "log").read_bytes()[-_LOG_CHARACTERS:].decode("utf-8", "replace").strip()
        return ""

    def stop(self) -> None:
        """End the helper, with whatever it started, and remove its folder."""
        if self.owner != os.getpid():
            return
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.process = self.folder = None


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    return {
        signal.SIGSEGV: "segmentation fault",
        signal.SIGABRT: "it aborted",
        signal.SIGKILL: "killed, most often for lack of memory",
    }.get(-code, f"signal {-code}")


_helper = _Helper()
atexit.register(_helper.stop)
