"""Interpreter and compiler agree on every construct: value, dtype, and what is refused; or CPU mode
says what it cannot do.

On a GPU the same test runs the compiled kernel, so that what is written down in constructs.py is
tested, too.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import compiler_facts
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from constructs import ARGUMENTS, SHORT, Construct, constructs

import course_lib
from course_lib.base.files import write_atomic

ALL = constructs()
USER = "tests/interpreter/test_constructs.py"  # in the file of the kept facts
COMPILING = Path(__file__).with_name("compile_constructs.py")
DEVICE = "cuda" if course_lib.MODE == "gpu" else "cpu"
TORCH = {
    **{name: getattr(torch, name) for name in (*SHORT, "bool")},
    "float8e4nv": torch.float8_e4m3fn,
    "float8e5": torch.float8_e5m2,
}
POINTERS = {
    **SHORT,
    "bool": "i1",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
}
SCALARS = {"n": "i32", "neg": "i32", "big": "i64", "eps": "fp32", "flag": "u1", "half": "fp32"}
MISSING = [  # of each construct: the names that this Triton, an older one, has not
    [name for name in re.findall(r"\btl\.(\w+)", construct.text) if not hasattr(tl, name)]
    for construct in ALL
]
named = pytest.mark.parametrize(
    "number", range(len(ALL)), ids=[construct.name for construct in ALL]
)


def skip_what_is_missing(number: int) -> None:
    if tuple(map(int, triton.__version__.split(".")[:2])) < ALL[number].since:
        pytest.skip("an older Triton refuses it")
    if MISSING[number]:
        pytest.skip(f"this Triton has no tl.{MISSING[number][0]}")


def out_dtype(construct: Construct) -> str:
    return "int8" if construct.dtype == "bool" and not construct.stores else construct.dtype


def make_tensor(dtype: str, numbers: list) -> torch.Tensor:
    if dtype.startswith("uint"):
        return torch.from_numpy(np.array(numbers, dtype)).to(DEVICE)
    return torch.tensor(numbers, dtype=TORCH[dtype], device=DEVICE)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The kernels of all constructs, one module each, so that helpers of one name are apart."""
    folder, loaded = tmp_path_factory.mktemp("constructs"), {}

    def load(number: int):
        if number not in loaded:
            path = write(folder, number)
            described = importlib.util.spec_from_file_location(path.stem, path)
            assert described is not None and described.loader is not None
            loaded[number] = importlib.util.module_from_spec(described)
            sys.modules[path.stem] = loaded[number]
            described.loader.exec_module(loaded[number])
        return loaded[number].kernel

    yield load
    for number in loaded:
        sys.modules.pop(f"construct_{number}", None)


def write(folder: Path, number: int) -> Path:
    path = folder / f"construct_{number}.py"
    path.write_text(f"import triton\nimport triton.language as tl\n{ALL[number].source('kernel')}")
    return path


@pytest.fixture(scope="module", params=compiler_facts.MODES)
def compiler_says(request, tmp_path_factory) -> dict[int, str | None]:
    """What the compiler says of each construct that this run asks for: why it refuses it, or
    None."""
    folder = tmp_path_factory.mktemp("compiled")
    chosen = list_chosen(request.session)
    jobs = [make_job(folder, number) for number in chosen]
    keys = [
        compiler_facts.make_key([Path(path).read_text(), *rest], [COMPILING])
        for path, *rest in jobs
    ]

    def ask(numbers: list[int]) -> list[str | None]:
        return ask_once(
            tmp_path_factory, request.param, folder, [jobs[number] for number in numbers]
        )

    facts = request.config.pluginmanager.get_plugin("fact-keeper").facts
    answers = facts.recall(USER, keys, ask, anew=request.param == "anew")
    return dict(zip(chosen, answers, strict=True))


def list_chosen(session: pytest.Session) -> list[int]:
    """Return the numbers of the constructs that the tests of this session ask the compiler
    about."""
    function = test_the_compiler_takes_what_the_table_says.__name__
    items = [
        item
        for item in session.items
        if isinstance(item, pytest.Function) and item.originalname == function
    ]
    return sorted({item.callspec.params["number"] for item in items})


def make_job(folder: Path, number: int) -> list:
    """Write the module of a construct, and return what compile_constructs.py is asked about it."""
    construct = ALL[number]
    pointers = {"out_ptr": f"*{POINTERS[out_dtype(construct)]}"}
    pointers |= {
        f"{name}_ptr": f"*{POINTERS[dtype]}" for name, (dtype, _) in construct.blocks().items()
    }
    pointers |= {name: f"*{POINTERS[dtype]}" for name, (dtype, _) in construct.extra.items()}
    signature = (
        pointers | {name: SCALARS[name] for name in construct.arguments()} | {"K": "constexpr"}
    )
    return [str(write(folder, number)), "kernel", signature, construct.refused]


def ask_once(tmp_path_factory, mode: str, folder: Path, jobs: list[list]) -> list[str | None]:
    """Ask the compiler. The workers of a run have the same questions: the first asks, and the
    others wait for its answers."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return ask_compiler(folder, jobs)
    # the folder of this run, which its workers share
    shared = tmp_path_factory.getbasetemp().parent / f"compiler_says_{mode}.json"
    with open(shared.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            write_atomic(shared, json.dumps(ask_compiler(folder, jobs)))
    return json.loads(shared.read_text())


def ask_compiler(folder: Path, jobs: list[list]) -> list[str | None]:
    (folder / "job.json").write_text(json.dumps(jobs))
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TRITON_") and name != "COURSE_DEVICE"
    }
    ran = subprocess.run(
        [sys.executable, str(COMPILING), str(folder / "job.json")],
        capture_output=True, text=True,
        env={**environment, "TRITON_CACHE_DIR": str(folder / "cache")}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@named
def test_the_compiler_takes_what_the_table_says(number, compiler_says):
    construct, refusal = ALL[number], compiler_says[number]
    skip_what_is_missing(number)
    if construct.refused:
        assert refusal is not None, (
            f"{construct.name}: the compiler takes it\n{construct.source('kernel')}"
        )
        assert "the dtype is another" not in refusal
    else:
        assert refusal is None, f"{construct.name}: {refusal}\n{construct.source('kernel')}"


@named
def test_a_run_gives_what_the_table_says(number, module):
    construct = ALL[number]
    skip_what_is_missing(number)
    if DEVICE == "cuda" and construct.only and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU is too old for it")
    count = len(construct.want) if isinstance(construct.want, list) else 1
    out = make_tensor(out_dtype(construct), [0] * max(count, 8))
    memory = [
        make_tensor(dtype, numbers)
        for dtype, numbers in (*construct.blocks().values(), *construct.extra.values())
    ]
    kernel = module(number)
    if DEVICE == "cuda":  # tensor descriptors are kept in memory that the launcher asks for
        triton.set_allocator(
            lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )

    def launch() -> None:
        kernel[(1,)](out, *memory, *(ARGUMENTS[name] for name in construct.arguments()), K=4)

    if DEVICE == "cpu" and construct.cpu == "words":
        with pytest.raises(Exception, match=f"CPU mode cannot run .*{construct.words}"):
            launch()
        return
    if construct.cpu == "words":  # a GPU takes it; what it gives is not CPU mode's to know
        launch()
        return
    if construct.want is None:
        if DEVICE == "cuda" or construct.cpu != "runs":
            with pytest.raises(
                Exception, match=re.escape(construct.words) if DEVICE == "cpu" else ""
            ):
                launch()
        return
    launch()
    got = out.cpu()
    got = got.to(torch.float64) if got.dtype.is_floating_point else got
    want = construct.want if isinstance(construct.want, list) else [construct.want]
    got = got[: len(want)].numpy()
    wanted = np.array(want, got.dtype)
    if construct.near:
        np.testing.assert_allclose(got, wanted, rtol=construct.near, atol=construct.near)
    else:
        np.testing.assert_array_equal(got, wanted)


# ---- completeness --------------------------------------------------------------------------------

# public names that no construct uses, each with its reason
NOT_IN_THE_TABLE = {
    "TRITON_MAX_TENSOR_NUMEL": "a number of Triton's own",
    "block_type": "a type of the compiler", "const": "a type of the compiler",
    "constexpr_type": "a type of the compiler",
    "dtype": "a type of the compiler", "slice": "a type of the compiler",
    "tensor": "a type of the compiler",
    "tensor_descriptor": "a type of the compiler",
    "tensor_descriptor_type": "a type of the compiler",
    "tuple_type": "a type of the compiler",
    "void": "a type of the compiler",
    "pi32_t": "a type of the compiler", "str_to_ty": "for Triton's launcher",
    "core": "a module", "random": "a module", "semantic": "a module", "standard": "a module",
    "target_info": "a module: what a kernel is compiled for",
    "float8e4b15": "made by no course kernel; CUDA only", "float8e4b8": "AMD's fp8",
    "float8e5b16": "AMD's fp8",
}  # fmt: skip
OPERATORS = {
    "add": r"\+", "radd": r"\+", "sub": "-", "rsub": "9 -", "mul": r"\*", "rmul": r"\*",
    "truediv": "/", "rtruediv": r"3\.0 /",
    "floordiv": "//", "rfloordiv": "7 //", "mod": "%", "rmod": "100 %", "lshift": "<<",
    "rlshift": "<<", "rshift": ">>",
    "rrshift": ">>", "and": "&", "rand": "&", "or": r"\|", "ror": r"\|", "xor": r"\^",
    "rxor": r"\^", "invert": "~", "neg": "-",
    "not": "not ", "eq": "==", "req": "==", "ne": "!=", "rne": "!=", "lt": "<", "rlt": "3 <",
    "le": "<=", "rle": "<=", "gt": ">",
    "rgt": ">", "ge": ">=", "rge": ">=", "getitem": r"\[:, None\]",
}  # fmt: skip


def test_every_public_name_of_the_language_stands_in_the_table():
    text = "\n".join(construct.text for construct in ALL)
    used = set(re.findall(r"\btl\.(\w+)", text))
    names = {name for name in dir(tl) if not name.startswith("_")}
    missing = names - used - NOT_IN_THE_TABLE.keys()
    assert not missing, f"no construct uses {', '.join(sorted(missing))}"
    needless = NOT_IN_THE_TABLE.keys() & used
    assert not needless, f"a construct uses {', '.join(sorted(needless))}"
    used = set(re.findall(r"\btl\.math\.(\w+)", text))
    missing = (
        {name for name in dir(tl.math) if not name.startswith("_")}
        - used
        - {"T", "List", "core", "wraps"}
    )
    assert not missing, f"no construct uses tl.math's {', '.join(sorted(missing))}"


def test_every_method_and_operator_of_a_tensor_stands_in_the_table():
    text = "\n".join(construct.text for construct in ALL)
    methods = {name for name in dir(tl.tensor) if not name.startswith("_")}
    missing = {name for name in methods if not re.search(rf"(?<!\btl)(?<!math)\.{name}\b", text)}
    assert missing <= {"logical_and", "logical_or"}, sorted(missing)  # what `and` and `or` become
    members = {name.strip("_") for name in vars(tl.tensor) if name.startswith("__")}
    members -= {
        "doc",
        "hash",
        "init",
        "module",
        "str",
        "repr",
        "dict",
        "weakref",
        "index",
        "bool",
        "annotations",
    }
    assert members <= OPERATORS.keys(), sorted(members - OPERATORS.keys())
    assert [name for name in sorted(members) if not re.search(OPERATORS[name], text)] == []
