"""The helper process: compiles kernels given as source text, and measures what came out. No GPU is needed.

Started as a script, ``python -P compile_server.py FOLDER``, without ``TRITON_INTERPRET``: a process whose own Triton
interprets cannot compile. One job a line on stdin, one answer a line on what was stdout, both JSON; whatever a kernel,
Triton or LLVM print goes to ``FOLDER/log``. It ends when stdin does, and takes FOLDER with it.

Kernels come as units: a text, the line number it starts at, and how to fill its global names. A bad kernel is an answer
with a line and a sentence, never a traceback. The private interfaces of Triton used here are the launcher's own
``create_function_from_signature`` and ``JITFunction._pack_args``, the same in 3.6 and 3.7.1.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import linecache
import operator
import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import time
import traceback
import types
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

_UNIT = "course_kernel_{}.py"  # a base name that no file of Triton's has: debug comments in PTX give base names only
_ADDRESS_BYTES = 8 << 30  # ten times what it takes; an endless unrolled loop ends here and not in swap
_WARP_SIZE = 32


def main(folder: Path) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = _ADDRESS_BYTES if hard == resource.RLIM_INFINITY else min(_ADDRESS_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    _answer(answers, {"ready": triton.__version__})
    for number, line in enumerate(sys.stdin):
        workplace = folder / str(number)  # a fresh path each time: nothing stale in caches that go by file name
        workplace.mkdir()
        try:
            _answer(answers, _run(json.loads(line), workplace, folder / "log"))
        finally:
            linecache.clearcache()
            for used in (workplace, folder / "cache"):
                shutil.rmtree(used, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def _answer(out, answer: dict) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def _run(job: dict, folder: Path, log: Path) -> dict:
    started = time.perf_counter()
    units = Units(job, folder)
    log_start = log.stat().st_size
    try:
        report = _compile(job, units)
    except BaseException as error:  # a kernel may raise SystemExit while it is imported
        sys.stderr.flush()
        with log.open("rb") as file:
            file.seek(log_start)
            printed = file.read().decode("utf-8", "replace")
        return {"id": job["id"], "error": _explained(error, units, printed)}
    return {"id": job["id"], "report": report | {"seconds": time.perf_counter() - started}}


class NoKernel(Exception):
    """The text runs, and defines no @triton.jit function of that name."""


class NoTool(Exception):
    """A program that comes with Triton is not there, or does not run. Not the kernel's fault."""


class BadArguments(Exception):
    """The kernel's parameters do not fit the arguments."""


class Units:
    """The job's source texts as modules: written to files, run, and wired up."""

    kind: type = JITFunction  # what a kernel is in this process

    def __init__(self, job: dict, folder: Path):
        self.units, self.name = job["units"], job["name"]
        self.files = [folder / _UNIT.format(number) for number in range(len(self.units))]
        self.texts = ["\n" * (unit["first_line"] - 1) + unit["text"] for unit in self.units]
        self.spaces: list[dict] = [{} for _ in self.units]
        self.compiling = "source"

    def load(self) -> JITFunction:
        """The kernel, after every unit has run.

        Raises: whatever the texts raise; NoKernel.
        """
        for file, text, space in zip(self.files, self.texts, self.spaces, strict=True):
            file.write_text(text, encoding="utf-8", newline="")
            space.update(__name__=file.stem, __file__=str(file))
        for number, (unit, space) in enumerate(zip(self.units, self.spaces, strict=True)):
            # constants and modules first: a default value of a parameter may name one
            space.update({name: self.decode(value) for name, value in unit["globals"].items() if "jit" not in value})
            # annotations stay text, which is how Triton reads them, so that none of them can fail
            flags = 0 if unit["jit"] is None else __import__("__future__").annotations.compiler_flag
            exec(compile(self.texts[number], str(self.files[number]), "exec", flags, dont_inherit=True), space)
            if unit["jit"] is not None:
                space[unit["name"]] = triton.jit(space[unit["name"]], **unit["jit"])
        for unit, space in zip(self.units, self.spaces, strict=True):
            space.update({name: self.decode(value) for name, value in unit["globals"].items()})
        kernel = self.spaces[0].get(self.name)
        if not isinstance(kernel, self.kind):
            raise NoKernel
        return kernel

    def functions(self) -> list[tuple[int, JITFunction]]:
        """Every jitted function of the units, with the number of its unit."""
        numbers = {str(file): number for number, file in enumerate(self.files)}
        found = {id(value): value for space in self.spaces for value in space.values() if isinstance(value, JITFunction)}
        places = ((numbers.get(function.fn.__code__.co_filename), function) for function in found.values())
        return [(number, function) for number, function in places if number is not None]

    def decode(self, value: dict):
        """The Python value of one of compiler.py's descriptions."""
        ((kind, content),) = value.items()
        if kind == "value":
            return content
        if kind == "constexpr":
            return tl.constexpr(self.decode(content))
        if kind == "dtype":
            return tl.dtype(content)
        if kind == "jit":
            return self.spaces[content][self.units[content]["name"]]
        if kind == "module":
            return importlib.import_module(content)
        if kind == "triton":
            return operator.attrgetter(content[1])(importlib.import_module(content[0]))
        if kind == "namespace":
            module = types.ModuleType(content["name"])
            vars(module).update({name: self.decode(inner) for name, inner in content["names"].items()})
            return module
        if kind == "pointer":
            return _Pointer(content["dtype"], content["address"])
        return type(content, (), {})()  # something a kernel cannot use; the compiler says so, by its type's name


@dataclass(frozen=True)
class _Dtype:
    """Reads like a dtype of PyTorch's, which is not imported here: a second and 300 MB for a name."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class _Pointer:
    """What the launcher looks at of a tensor."""

    dtype_name: str
    address: int
    dtype: _Dtype = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "dtype", _Dtype(self.dtype_name))

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        return 2**31  # only AMD specialises on small buffers


def _compile(job: dict, units: Units) -> dict:
    _path_of("ptxas")
    kernel = units.load()
    target = GPUTarget("cuda", job["arch"], _WARP_SIZE)
    options = {name: job[name] for name in ("num_warps", "num_stages", "maxnreg") if job[name] is not None}
    source = _specialised(kernel, job, units, make_backend(target), options)
    units.compiling = "compiler"
    with _assembling(lambda ptx: at_call_sites(ptx, units.files[0].name)):
        compiled = triton.compile(source, target=target, options=options)
    ptx = compiled.asm["ptx"]
    cubin = units.files[0].with_suffix(".cubin")
    cubin.write_bytes(compiled.asm["cubin"])
    usage = dict(re.findall(r"\b(REG|STACK):(\d+)", _tool("cuobjdump", "-res-usage", str(cubin))))
    report = {
        "registers": int(usage["REG"]),
        "spill_bytes": int(usage["STACK"]),
        "shared_bytes": compiled.metadata.shared,
        "ttir": compiled.asm["ttir"], "ttgir": compiled.asm["ttgir"], "ptx": ptx,
        "sass": None, "loads": None, "stores": None,
    }  # fmt: skip
    places = {"ptx": ptx_lines(ptx, units.files[0].name), "sass": {}}
    if job["disassemble"]:
        sass, places["sass"] = sass_lines(_tool("nvdisasm", "-c", "-g", "-ndf", str(cubin)), units.files[0].name)
        report |= {"sass": sass, "loads": widths(sass, "LDG|LDGSTS"), "stores": widths(sass, "STG")}
    numbers = sorted(places["ptx"].keys() | places["sass"].keys())
    report["lines"] = [(number, places["ptx"].get(number, []), places["sass"].get(number, [])) for number in numbers]
    return report


def _specialised(kernel: JITFunction, job: dict, units: Units, backend, options: dict) -> ASTSource:
    """The kernel with the signature, constants and attributes that the launcher would give it."""
    positional = [units.decode(value) for value in job["positional"]]
    named = {name: units.decode(value) for name, value in job["named"].items()}
    unknown = [name for name in named if name not in kernel.arg_names]
    if unknown:
        raise BadArguments(f"it has no parameter `{unknown[0]}`")
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    named |= options
    try:
        bound, specialization, rest = binder(*positional, **named)
    except TypeError as refused:
        if not str(refused).startswith("dynamic_func()"):
            raise
        raise BadArguments(str(refused).removeprefix("dynamic_func() ").replace("'", "`")) from None
    _, signature, constexprs, attributes = kernel._pack_args(backend, named, bound, specialization, rest)
    return ASTSource(kernel, signature, constexprs, attributes)


def _path_of(tool: str) -> str:
    try:
        return getattr(triton.knobs.nvidia, tool).path
    except (RuntimeError, OSError) as missing:
        raise NoTool(
            f"the {tool} that comes with Triton cannot run on this machine ({missing}), so nothing can be compiled here. "
            "Install Triton again: `pip install --force-reinstall --no-deps triton` with the version of constraints.txt."
        ) from None


def _tool(name: str, *arguments: str) -> str:
    try:
        return subprocess.run([_path_of(name), *arguments], capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as failed:
        words = (failed.stderr or failed.stdout or "").strip().splitlines()[-1:] or [f"exit code {failed.returncode}"]
        raise NoTool(f"the {name} that comes with Triton cannot read what its compiler made ({words[0]}).") from None


@contextlib.contextmanager
def _assembling(change):
    """Inside the block ptxas gets ``change(ptx)`` in place of the PTX."""

    def inspect_stages(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:  # asked what this adds to the key of Triton's cache
            return "course", "course"
        assemble = stages["cubin"]
        stages["cubin"] = lambda ptx, metadata: assemble(change(ptx), metadata)

    before = triton.knobs.runtime.add_stages_inspection_hook
    triton.knobs.runtime.add_stages_inspection_hook = inspect_stages
    try:
        yield
    finally:
        triton.knobs.runtime.add_stages_inspection_hook = before


def at_call_sites(ptx: str, file: str) -> str:
    """The PTX with the place of inlined code (a ``tl.sum``) replaced by the place in ``file`` that calls it.

    ptxas keeps the innermost place only, and in SASS nothing would lead from a reduction back to the kernel. Only the
    ``.loc`` directives change, which make no instruction.
    """
    numbered = re.search(rf'^\s*\.file\s+(\d+)\s[^\n]*{re.escape(file)}"', ptx, re.MULTILINE)
    if numbered is None:
        return ptx
    inlined = re.compile(rf"^(\s*)\.loc\s[^\n]*?@\[ {re.escape(file)}:(\d+):(\d+)[^\n]*", re.MULTILINE)
    return inlined.sub(rf"\g<1>.loc\t{numbered[1]} \2 \3", ptx)


_ACCESS_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


def widths(sass: str, instructions: str) -> dict[int, int]:
    """How many of the global loads or stores there are, by bytes a thread moves. A loop's body counts once."""
    counts = Counter()
    for modifiers in re.findall(rf"^\s*(?:@!?U?P\w+\s+)?(?:{instructions})((?:\.\w+)*)\s", sass, re.MULTILINE):
        bits = [_ACCESS_BITS[part] for part in modifiers.split(".") if part in _ACCESS_BITS]
        counts[(bits[-1] if bits else 32) // 8] += 1
    return dict(sorted(counts.items()))


def ptx_lines(ptx: str, file: str) -> dict[int, list[int]]:
    """Line of ``file`` -> the lines of the PTX made from it. For inlined code, the innermost call that ``file`` has."""
    lines: dict[int, list[int]] = {}
    source = None
    for number, text in enumerate(ptx.splitlines(), 1):
        stripped = text.strip()
        if stripped.startswith(".loc"):
            here = re.search(rf"{re.escape(file)}:(\d+):", text)
            source = int(here[1]) if here else None
        elif stripped.startswith((".section", "}")):
            source = None
        elif source and stripped.endswith(";"):
            lines.setdefault(source, []).append(number)
    return lines


def sass_lines(listing: str, file: str) -> tuple[str, dict[int, list[int]]]:
    """The instructions and labels of an nvdisasm listing, and which lines of them come from each line of ``file``."""
    kept: list[str] = []
    lines: dict[int, list[int]] = {}
    source = None
    for text in listing.splitlines():
        stripped = text.strip()
        if stripped.startswith("//## File"):
            here = re.match(r'//## File "([^"]*)", line (\d+)', stripped)
            source = int(here[2]) if here and os.path.basename(here[1]) == file else None
        elif instruction := re.match(r"/\*[0-9a-f]+\*/\s+(.*;)", stripped):
            kept.append(f"        {instruction[1]}")
            if source:
                lines.setdefault(source, []).append(len(kept))
        elif re.match(r"\.L_x_\d+:", stripped):
            kept.append(stripped)
    return "\n".join(kept) + "\n", lines


@dataclass(frozen=True)
class _Place:
    """A node of a kernel, with its place in the text it came from."""

    unit: int
    line: int
    column: int
    node: ast.AST | None = None
    function: ast.FunctionDef | None = None
    shift: int = 0  # what a line of ``function`` needs added

    def at(self, node: ast.AST) -> _Place:
        return _Place(self.unit, node.lineno + self.shift, node.col_offset, node, self.function, self.shift)


def _explained(error: BaseException, units: Units, printed: str) -> dict:
    chain = [error]
    while chain[-1].__cause__ is not None and len(chain) < 50:
        chain.append(chain[-1].__cause__)
    place = _place(chain, units)
    text = _words(chain[-1])
    if isinstance(chain[-1], NoKernel):
        return _said("no_kernel", f"there is no @triton.jit function named `{units.name}`", _Place(0, units.units[0]["first_line"], 0))
    if isinstance(chain[-1], NoTool):
        return _said("no_tool", str(chain[-1]), place)
    if isinstance(chain[-1], BadArguments):
        return _said("arguments", f"the arguments do not fit `{units.name}`: {text}", place)
    if isinstance(chain[-1], SyntaxError):
        bad = chain[-1]
        return _said("syntax_error", f"this is not valid Python ({bad.msg})", _Place(0, bad.lineno or 1, max((bad.offset or 1) - 1, 0)))
    if units.compiling == "compiler" and (mlir := re.search(r"(\S+):(\d+):(\d+): error: (.*)", printed)):
        for number, file in enumerate(units.files):
            if os.path.basename(mlir[1].strip("\"'")) == file.name:
                place = _Place(number, int(mlir[2]), int(mlir[3]) - 1)
        text = mlir[4]
    for cause, pattern, say in _KNOWN:
        if (match := re.search(pattern, text, re.DOTALL)) and (said := say(match, place)):
            return _said(cause, *said)
    return _said("other", f"{text or type(chain[-1]).__name__}", place)


def _said(cause: str, sentence: str, place: _Place) -> dict:
    return {"cause": cause, "sentence": sentence, "unit": place.unit, "line": place.line, "column": place.column}


def _words(error: BaseException) -> str:
    """The error's own text without the excerpt of source around it, on one line."""
    text = getattr(error, "error_message", None) or ("" if hasattr(error, "node") else str(error))
    # Triton passes some exceptions on as their repr
    if quoted := re.fullmatch(r"(\w+)\((.*?),?\)", text, re.DOTALL):
        with contextlib.suppress(ValueError, SyntaxError):
            text = str(ast.literal_eval(quoted[2]))
    if isinstance(error, AssertionError) and not text:
        text = "an assertion of the compiler failed"
    text = re.sub(r"\s+", " ", text).strip().rstrip(".")
    if len(text) > 400:
        text = text[:400].rsplit(" ", 1)[0] + " ..."
    return text.encode("utf-8", "replace").decode()


def _place(chain: list[BaseException], units: Units) -> _Place:
    """The innermost place in the units' own text that an error went through; the kernel's first line if it names none."""
    functions = units.functions()
    for link in reversed(chain):
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if hasattr(node, "lineno"):
            for unit, function in functions:
                if function.src == source:
                    return _in_function(unit, function, node)
    # errors from before code generation have no node; the visitor that met it still has one
    for link in reversed(chain):
        for frame, _ in reversed(list(traceback.walk_tb(link.__traceback__))):
            node, visitor = frame.f_locals.get("node"), frame.f_locals.get("self")
            if isinstance(node, ast.AST) and hasattr(node, "lineno") and hasattr(visitor, "globals"):
                for unit, function in functions:
                    if function.__globals__ is visitor.globals and visitor.name.endswith(f".{function.__name__}"):
                        return _in_function(unit, function, node)
        for frame, line in reversed(list(traceback.walk_tb(link.__traceback__))):
            for number, file in enumerate(units.files):
                if frame.f_code.co_filename == str(file):
                    return _Place(number, line, 0)
    for unit, function in functions:
        if unit == 0 and function.__name__ == units.name:
            return _in_function(unit, function, function.parse().body[0])
    return _Place(0, units.units[0]["first_line"], 0)


def _in_function(unit: int, function: JITFunction, node: ast.AST) -> _Place:
    raw = textwrap.dedent("".join(function.raw_src))
    decorators = raw[: re.search(r"^def\s+\w+\s*\(", raw, re.MULTILINE).start()].count("\n")
    shift = function.starting_line_number + decorators - 1
    return _Place(unit, node.lineno + shift, node.col_offset, node, function.parse().body[0], shift)


def _loop_carried(match: re.Match, place: _Place) -> tuple[str, _Place]:
    name, before, after = match[1], _type(match[2]), _type(match[3])
    if place.node is not None:  # the compiler points at the loop; the assignment is what has to change
        inside = [
            node for node in ast.walk(place.node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        ]
        if inside:
            place = place.at(max(inside, key=lambda node: node.lineno))
    return f"loop-carried variable `{name}` changes its type from {before} to {after} in the loop; give it one type before the loop", place


def _type(text: str) -> str:
    """``<['8'], fp16>`` and ``<[8], fp16>`` in words."""
    block = re.match(r"<\[(.*)\], (.*)>$", text.strip())
    return f"a block of {block[1].replace(chr(39), '').replace(', ', ' x ')} {block[2]}" if block else text.strip()


def _not_defined(match: re.Match, place: _Place) -> tuple[str, _Place]:
    name = match[1]
    for node in ast.walk(place.function) if place.function else []:
        if isinstance(node, (ast.If, ast.For, ast.While)):
            inner = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id == name]
            if inner:
                where = "one branch of the `if`" if isinstance(node, ast.If) else "the loop"
                line = place.at(node).line
                return f"`{name}` is defined only inside {where} in line {line}, which may not run; give it a value before that", place
    return f"`{name}` is not defined", place


def _ambiguous(match: re.Match, place: _Place) -> tuple[str, _Place]:
    test = getattr(place.node, "test", None)
    what = f"`{ast.unparse(test)}`" if test is not None else "this"
    return f"`if` needs a single value, and {what} is a block; use `tl.where`, or the mask of a load or store", place


def _index(match: re.Match, place: _Place) -> tuple[str, _Place]:
    what = f"`{ast.unparse(place.node)}` indexes a block" if isinstance(place.node, ast.Subscript) else "a block is indexed"
    return f"{what}, which has no single elements in a kernel; reduce it (`tl.sum`, `tl.max`) or load the element from memory", place


def _unsupported_node(match: re.Match, place: _Place) -> tuple[str, _Place]:
    if match[1] in ("Break", "Continue"):
        return f"the compiler does not support `{match[1].lower()}`; put the condition into the loop's bounds, or into a mask", place
    words = ast.unparse(place.node).splitlines()[0] if place.node is not None else match[1]
    return f"the compiler does not support `{words}` in a kernel ({match[1]})", place


def _fixed(sentence: str):
    return lambda match, place: (match.expand(sentence), place)


# cause, what Triton's text matches, what is said instead, and where
_KNOWN = [
    (
        "plain_global",
        r"Cannot access global variable (\w+)",
        _fixed(r"`\1` is a plain Python global, which the compiler refuses; write `\1 = tl.constexpr(...)` or pass it as an argument"),
    ),
    ("loop_carried_type", r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop", _loop_carried),
    ("unsupported_statement", r"unsupported AST node type: (\w+)", _unsupported_node),
    ("block_condition", r"Boolean value of Tensor with more than one value is ambiguous", _ambiguous),
    (
        "arange_runtime",
        r"arange's arguments must be of type tl.constexpr",
        _fixed("`tl.arange` needs constants, and a bound here is known only at run time; use a tl.constexpr BLOCK and a mask"),
    ),
    ("block_index", r"unsupported tensor index", _index),
    (
        "list_method",
        r"(?:'(?:tuple|list)' object has no attribute '?|^'(?=\w+' is not in list))(\w+)",  # 3.7, 3.6
        _fixed(r"`.\1` changes a Python list, and a list cannot grow in a kernel; keep the values in a block or in names"),
    ),
    ("undefined_name", r"^(?:name )?'?(\w+)'? is not defined$", _not_defined),
    (
        "branch_type",
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)",
        lambda match, place: (
            f"`{match[1]}` is {_type(match[2])} after one branch and {_type(match[3])} after the other; make them one type",
            place,
        ),
    ),
    (
        "chained_assignment",
        r"Simultaneous multiple assignment is not supported",
        _fixed("the compiler does not support two assignments in one statement; write them on two lines"),
    ),
    (
        "power",
        r"'tensor' object has no attribute '__pow__'",
        _fixed("the compiler has no `**` for blocks; multiply instead (`x * x`)"),
    ),
    (
        "block_through_scalar_pointer",
        r"Value argument cannot be block type if pointer argument is not a block",
        _fixed("a block is stored through one pointer; add offsets to the pointer, one for each lane"),
    ),
    (
        "foreign_value",
        r"cannot convert (.+) of type <class 'numpy\.(\w+)'> to tensor",
        _fixed(r"`numpy.\2` is a value of NumPy's, which the compiler cannot use; write a plain number"),
    ),
]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
