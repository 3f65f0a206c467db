"""Programs that share memory: the grader's child interleaves them, and says race, deadlock or order
with both lines."""

from __future__ import annotations

import re

import numpy as np
import pytest

from course_lib import catalog
from course_lib.catalog import mutants, texts
from course_lib.compiler import KernelSource, Pointer, compile_report
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Batch, Expected, Plan
from course_lib.grading.execution.runner import run
from course_lib.grading.judging.judge import judge
from course_lib.grading.submission.source import Kernels

M, N = 4, 8
HEAD = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef sum_rows(x_ptr, total_ptr,"
    " part_ptr, lock_ptr, N: tl.constexpr):\n"
)
RULES = {"kind": "kernel", "forbidden": {}, "file": "ex.py", "given": ""}
ADD = ("cols = tl.arange(0, N)", "row = tl.load(x_ptr + tl.program_id(0) * N + cols)")
TAKE = "while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass"
UPDATE = "tl.store(total_ptr + cols, tl.load(total_ptr + cols) + row)"
RELEASE = "tl.debug_barrier()\n    tl.atomic_xchg(lock_ptr, 0)"
ZERO = "tl.store(total_ptr + cols, tl.zeros([N], tl.float32))"


def plan(values: np.ndarray, any_order: bool = True, interleavings: int = 6) -> Plan:
    tensors = (
        Tensor("x", "fp32", (M, N), (N, 1), values.astype(np.float32)),
        Tensor("total", "fp32", (N,), (1,), np.zeros(N, np.float32), scratch=True),
        Tensor("part", "fp32", (M, N), (N, 1), scratch=True),
        Tensor("lock", "int32", (2,), (1,), np.zeros(2, np.int32), scratch=True),
    )
    case = Case("c", M, N, N, "programs that share memory")
    arguments = tuple(t.name for t in tensors)
    return Plan(
        case,
        "sum_rows",
        (M,),
        tensors,
        arguments,
        {"N": N},
        {},
        interleavings=interleavings,
        any_order=any_order,
    )


def child(body: tuple[str, ...], the_plan: Plan):
    text = HEAD + "".join(f"    {line}\n" for line in body)
    return run(Kernels(text, ("sum_rows",), RULES), [the_plan], "cpu")


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ((*ADD, UPDATE), "race", "Race on total_ptr"),
        ((*ADD, TAKE, UPDATE), "deadlock", "Deadlock"),
        ((*ADD, TAKE, "tl.atomic_xchg(lock_ptr, 0)", UPDATE), "race", "Race on total_ptr"),
        (
            (
                *ADD,
                "while tl.load(lock_ptr) == 1:\n        pass",
                "tl.store(lock_ptr, 1)",
                UPDATE,
                "tl.store(lock_ptr, 0)",
            ),
            "race",
            "Race on lock_ptr",
        ),
        (
            (*ADD, TAKE, UPDATE, "tl.debug_barrier()", "tl.atomic_xchg(lock_ptr + 1, 0)"),
            "deadlock",
            "Deadlock",
        ),
        (
            (*ADD, TAKE, UPDATE, "tl.atomic_xchg(lock_ptr, 0)"),
            "no barrier",
            "one of them does the atomic_xchg at line 12",
        ),
        (
            (*ADD, TAKE, UPDATE, "tl.atomic_add(lock_ptr, -1)", "tl.debug_barrier()"),
            "no barrier",
            "no barrier makes it wait",
        ),
        (
            (
                *ADD,
                TAKE,
                UPDATE,
                "if tl.program_id(0) < 2:\n        tl.debug_barrier()",
                "tl.atomic_xchg(lock_ptr, 0)",
            ),
            "no barrier",
            "wait",
        ),
        (
            (
                *ADD,
                TAKE,
                "tl.store(part_ptr, tl.sum(tl.load(total_ptr + cols)))",
                "tl.atomic_xchg(lock_ptr, 0)",
                TAKE,
                UPDATE,
                RELEASE,
            ),
            "no barrier",
            "load at line",
        ),
    ],
    ids=[
        "no lock",
        "never released",
        "released early",
        "a lock that is no atomic",
        "another lock released",
        "no barrier",
        "barrier after the release",
        "barrier in one branch",
        "no barrier after a load",
    ],
)
def test_what_only_another_order_shows_is_found_with_its_line(body, kind, words):
    (error,) = child(body, plan(np.ones((M, N)))).errors.values()
    assert error.fault.kind == kind and words in error.text and "line" in error.text, error
    assert error.fault.line is None or error.fault.line > 6


def test_a_right_lock_passes_and_its_sum_is_right():
    x = np.arange(M * N, dtype=np.float32).reshape(M, N)
    the_plan = plan(x)
    outcome = child((*ADD, TAKE, UPDATE, RELEASE), the_plan)
    assert not outcome.errors and outcome.ended == "finished"
    start = the_plan.tensors[0].nbytes
    total = the_plan.tensors[1].read(outcome.data[0][start : start + the_plan.tensors[1].nbytes])
    assert total.tolist() == x.sum(axis=0).tolist()


ONE_NUMBER = (
    "while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass",
    "tl.store(total_ptr, tl.load(total_ptr) + tl.load(x_ptr + tl.program_id(0) * N))",
    "tl.atomic_xchg(lock_ptr, 0)",
)
OWN_ROWS = (  # the next tile comes from a counter; nobody reads what another program stores
    "cols = tl.arange(0, N)",
    "tile = tl.atomic_add(lock_ptr, 1)",
    (
        f"while tile < {M}:\n        tl.store(part_ptr + tile * N + cols, tl.load(x_ptr + tile * N"
        " + cols))\n        tile = tl.atomic_add(lock_ptr, 1)"
    ),
)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_block_with_one_column_needs_no_barrier_and_one_with_two_does(columns):
    masked = [line.replace("+ cols", f"+ cols, mask=cols < {columns}") for line in ADD]
    update = (
        f"tl.store(total_ptr + cols, tl.load(total_ptr + cols, mask=cols < {columns}) + row,"
        f" mask=cols < {columns})"
    )
    outcome = child((*masked, TAKE, update, "tl.atomic_xchg(lock_ptr, 0)"), plan(np.ones((M, N))))
    assert [error.type for error in outcome.errors.values()] == ([] if columns == 1 else ["Misuse"])
    assert all("no barrier makes it wait" in error.text for error in outcome.errors.values())


@pytest.mark.parametrize(
    "body",
    [ONE_NUMBER, OWN_ROWS],
    ids=["one thread stores and releases", "a counter that guards nothing"],
)
def test_a_kernel_that_needs_no_barrier_is_not_asked_for_one(body):
    outcome = child(body, plan(np.ones((M, N))))
    assert not outcome.errors and outcome.ended == "finished"


def ptx_of_12a(mutant: str) -> list[str]:
    """What 12a's first kernel does to memory, and where its threads meet, as compiled for sm_90
    with 4 warps."""
    exercise = catalog.get("12a")
    entries = {entry["id"]: entry for entry in mutants.read_mutants(exercise)}
    text = mutants.make_text(exercise, entries[mutant]) if mutant else texts.read_solution(exercise)
    arguments: list = [Pointer(dtype) for dtype in ["fp32"] * 6 + ["int32"]]
    arguments += [1008, 1, 1008, 1008]  # multiples of 16: blocks are stored four numbers at a time
    source = KernelSource(text, "add_to_buffers_kernel", "ex.py")
    ptx = compile_report(source, arguments, {"GROUP": 2, "BLOCK": 1024}, disassemble=False).ptx
    return [
        line.strip()
        for line in ptx.split("\n")
        if re.search(r"\b(ld\.global|st\.global|bar\.sync|atom\.global)", line)
    ]


@pytest.mark.parametrize(
    ("mutant", "meet"),
    [("", True), ("no_barrier", False), ("barrier_after_the_release", False),
        ("barrier_between_the_stores", False),
     ("barrier_before_the_stores", False), ("flag_by_an_atomic_for_a_barrier", False)],
)  # fmt: skip
def test_the_compiled_code_says_the_same_of_the_barrier(mutant, meet):
    """The threads of a program meet between its last store and the release only where the source
    has the barrier."""
    lines = ptx_of_12a(mutant)
    release = max(n for n, line in enumerate(lines) if "exch" in line)
    last_store = max(n for n, line in enumerate(lines[:release]) if "st.global" in line)
    assert any("bar.sync" in line for line in lines[last_store:release]) == meet


def test_the_compiled_code_does_single_numbers_in_one_thread_and_hands_an_atomics_result_to_all():
    """What the interleaved run takes for granted of the compiler."""
    lines = ptx_of_12a("")
    taken = next(n for n, line in enumerate(lines) if ".cas." in line)
    assert "bar.sync" in lines[taken + 1]
    predicates = [
        line.split()[0]
        for line in lines
        if ".b32" in line and re.search(r"atom\.global|st\.global\.b32", line)
    ]
    assert len(set(predicates)) == 1 and predicates[0].startswith("@%p")


def output_plan(values: tuple[float, ...], any_order: bool) -> Plan:
    x = np.array(values)[:, None] * np.ones((M, N))
    first = plan(x, any_order)
    total = Tensor("total", "fp32", (N,), (1,))
    count = Tensor("part", "int32", (M, N), (N, 1), np.zeros((M, N), np.int32), scratch=True)
    expected = {"total": Expected(np.full(N, sum(values)), np.full(N, 4.0))}
    tensors = (first.tensors[0], total, count, first.tensors[3])
    return Plan(
        first.case,
        "sum_rows",
        (M,),
        tensors,
        first.arguments,
        {"N": N},
        expected,
        interleavings=8,
        any_order=any_order,
    )


IN_TURN = (
    *ADD, TAKE, "seen = tl.atomic_xchg(part_ptr, 1)",
    "old = tl.load(total_ptr + cols, mask=(cols < N) & (seen == 1), other=0.0)",
    "tl.store(total_ptr + cols, old + row)", RELEASE,
)  # fmt: skip


ROUNDED = (1e7, 0.3, 1.0, 0.3)  # the order of the sum decides its last bit
CANCELLED = (1e8, 1.0, -1e8, 1.0)  # it decides whether 0, 1 or 2 comes out


def test_a_result_that_depends_on_the_order_is_refused_only_where_bits_are_asked_for():
    (error,) = child(IN_TURN, output_plan(ROUNDED, any_order=False)).errors.values()
    assert error.fault.kind == "order" and "total has other bits" in error.text
    loose = output_plan(ROUNDED, any_order=True)
    outcome = child(IN_TURN, loose)
    assert not outcome.errors and judge(loose, outcome.data[0]).passed


def test_an_order_that_leaves_quite_another_result_is_refused_even_if_bits_may_differ():
    (error,) = child(IN_TURN, output_plan(CANCELLED, any_order=False)).errors.values()
    assert error.fault.kind == "stale" and "total has quite other values" in error.text
    loose = output_plan(CANCELLED, any_order=True)
    outcome = child(IN_TURN, loose)
    assert outcome.errors[0].fault.kind == "stale in an order"
    assert judge(loose, outcome.data[0]).passed  # its first order is right


def test_bounds_are_checked_in_interleaved_programs_too():
    (error,) = child(
        (*ADD, "tl.atomic_add(total_ptr + N + cols, row)"), plan(np.ones((M, N)))
    ).errors.values()
    assert error.fault.tensor == "total" and error.fault.kind not in ("race", "deadlock")


@pytest.mark.parametrize(
    ("stored", "row"),
    [
        ("1.0", None),
        ("tl.program_id(0) * 1e-7 + 1.0", 0),
        ("0.0 / (0.0 * part_ptr.to(tl.int64))", None),
    ],
)
def test_columns_that_are_to_be_alike_are_compared_bit_by_bit_and_a_nan_is_like_any_other(
    stored, row
):
    tensors = (
        Tensor("x", "fp32", (M, N), (N, 1), np.ones((M, N), np.float32)),
        Tensor("part", "fp32", (1, M), (M, 1)),
    )
    body = (*ADD, f"tl.store(part_ptr + tl.program_id(0), {stored})")
    text = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef sum_rows(x_ptr,"
        " part_ptr, N: tl.constexpr):\n"
    )
    text += "".join(f"    {line}\n" for line in body)
    the_plan = Plan(
        Case("c", M, N, N, "one number per program"),
        "sum_rows",
        (M,),
        tensors,
        ("x", "part"),
        {"N": N},
        {},
        interleavings=2,
        alike=("part",),
    )
    errors = run(Kernels(text, ("sum_rows",), RULES), [the_plan], "cpu").errors
    assert [error.fault.kind for error in errors.values()] == ([] if row is None else ["unlike"])
    assert all(error.fault.row == row for error in errors.values())


@pytest.mark.parametrize(
    ("stored", "element"),
    [
        ("tl.sum(tl.load(x_ptr + cols))", None),
        ("1.0 / (1 - row) + 0.0 * rows", None),
        ("tl.where((row == 2) & (rows > 3), 1.0000001, 1.0)", "part[2]"),
    ],
)
def test_the_rows_of_a_smaller_batch_are_compared_bit_by_bit_and_a_nan_is_like_any_other(
    stored, element
):
    tensors = (
        Tensor("x", "fp32", (M, N), (N, 1), np.ones((M, N), np.float32)),
        Tensor("part", "fp32", (M,), (1,)),
    )
    text = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef sum_rows(x_ptr,"
        " part_ptr, rows, N: tl.constexpr):\n    row = tl.program_id(0)\n"
        "    cols = row * N + tl.arange(0, N)\n"
        f"    tl.store(part_ptr + row, {stored})\n"
    )
    the_plan = Plan(
        Case("c", M, N, N, "one number per program"),
        "sum_rows",
        (M,),
        tensors,
        ("x", "part", M),
        {"N": N},
        {},
        batch=Batch(3, ("x", "part", 3), {"N": N}),
    )
    errors = run(Kernels(text, ("sum_rows",), RULES), [the_plan], "cpu").errors
    if element is None:
        assert not errors
    else:
        (error,) = errors.values()
        assert (error.fault.kind, error.fault.row) == ("batch", 2)
        assert f"{element} is 1.0000001 in this batch, and 1.0 in the one with M = 3" in error.text
