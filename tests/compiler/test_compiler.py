"""Reports and refusals of the compiler, all through one warm server."""

from __future__ import annotations

import contextlib
import linecache
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
import torch
import triton
import triton.language as tl
from leftovers import processes_under

from course_lib import compiler
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.worker import WorkerDied
from course_lib.compiler import (
    CompileError,
    KernelSource,
    Pointer,
    assembly,
    compilation,
    compile_report,
    helper,
    machine,
    occupancy,
    refusals,
)
from course_lib.compiler.compile_job import CompilerAnswer
from course_lib.compiler.units import Units
from course_lib.kernels.launch import tables
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel
from course_lib.kernels.rms_norm import rms_norm_blocked_kernel, rms_norm_resident_kernel
from course_lib.sandbox import servers
from course_lib.sandbox.servers import WarmServer

ROW_LENGTHS = [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
HALF, STATISTIC = Pointer("fp16"), Pointer("fp32")
BOTH = {"HAS_W": True, "HAS_B": True}
SCALE = tl.constexpr(3.0)
PLAIN = 3.0


@triton.jit
def scaled(value, factor: tl.constexpr):
    return value * factor


@triton.jit
def scaling_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + cols, scaled(x, SCALE), mask=cols < N)


@triton.jit
def reaching_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols) * PLAIN)


def layer_norm(N, rows=None, num_warps=None, pointer=HALF, **options):
    table = tables.resident(N)
    constexprs = BOTH | {"ROWS": rows or table.rows, "BLOCK": table.block}
    arguments = [*[pointer] * 4, STATISTIC, STATISTIC, N, 1, N, 1, 4096, N, 1e-5]
    return compile_report(
        layer_norm_resident_kernel,
        arguments,
        constexprs,
        num_warps=num_warps or table.num_warps,
        **options,
    )


def rms_norm(N, add, **options):
    rows, block, num_warps = tables.resident(N)
    arguments = [*[HALF] * 5, STATISTIC, N, 1, N, 1, N, 1, 4096, N, 1e-5]
    constexprs = {"HAS_W": True, "ADD": add, "ROWS": rows, "BLOCK": block}
    return compile_report(
        rms_norm_resident_kernel, arguments, constexprs, num_warps=num_warps, **options
    )


# 32 warps leave 64 registers a thread, and a row of 32768 takes 32 of them for x alone. Triton 3.6
# fits the rest in; 3.7.1 spills 64 bytes a thread in LayerNorm and 8 in RMSNorm with the addition.
# More than that would be a kernel that got worse.
MOST_SPILLED = {32768: 64}


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("N", ROW_LENGTHS)
def test_resident_layer_norm_fits_its_registers(N):
    assert layer_norm(N, disassemble=False).spill_bytes <= MOST_SPILLED.get(N, 0)


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("N", ROW_LENGTHS)
def test_resident_rms_norm_fits_its_registers(N):
    report = rms_norm(N, add=True, disassemble=False)
    assert report.spill_bytes <= MOST_SPILLED.get(N, 0) and 0 < report.registers <= 255
    assert (
        occupancy("sm_90", report.registers, report.shared_bytes, report.num_warps)
        >= report.num_warps
    )


@pytest.mark.parametrize("arch", ["sm_80", "sm_100", "sm_120"])
def test_other_architectures(arch):
    for report in (
        layer_norm(1024, arch=arch),
        rms_norm(8192, add=False, arch=arch, disassemble=False),
    ):
        assert report.spill_bytes == 0 < report.registers
        assert f".target {arch}" in report.ptx
        assert occupancy(arch, report.registers, report.shared_bytes, report.num_warps) > 0
        if report.sass is not None:
            assert set(report.loads) == {16}


@pytest.mark.usefixtures("recall_compilations")
def test_blocked_kernels_fit_their_registers():
    _, block, num_warps = tables.blocked(100_000)
    options = {"num_warps": num_warps, "disassemble": False}
    norm = [*[HALF] * 4, STATISTIC, STATISTIC, 100_000, 1, 100_000, 1, 100_000, 1e-5]
    assert (
        compile_report(
            layer_norm_blocked_kernel, norm, BOTH | {"BLOCK": block}, **options
        ).spill_bytes
        == 0
    )
    norm = [*[HALF] * 3, STATISTIC, 100_000, 1, 100_000, 1, 100_000, 1e-5]
    assert (
        compile_report(
            rms_norm_blocked_kernel, norm, {"HAS_W": True, "BLOCK": block}, **options
        ).spill_bytes
        == 0
    )


def test_loads_are_16_bytes_wide_when_addresses_are_aligned():
    aligned, apart = layer_norm(1024), layer_norm(1024, pointer=Pointer("fp16", aligned=False))
    assert set(aligned.loads) == {16} and 16 in aligned.stores
    assert set(apart.loads) == {2} and 16 not in apart.stores
    assert sum(apart.loads.values()) == 8 * sum(aligned.loads.values())


@pytest.mark.usefixtures("recall_compilations")
def test_registers_fall_as_warps_grow_and_spills_go():
    one, four, eight, sixteen = (
        layer_norm(8192, rows=1, num_warps=warps, disassemble=False) for warps in (1, 4, 8, 16)
    )
    assert one.spill_bytes > 0 == four.spill_bytes == eight.spill_bytes == sixteen.spill_bytes
    assert four.registers > eight.registers > sixteen.registers


def test_arguments_are_specialised_as_the_launcher_does_it():
    def types(N, x=HALF, eps=1e-5):
        report = compile_report(
            scaling_kernel, {"x_ptr": x, "y_ptr": HALF, "N": N}, {"BLOCK": 16}, disassemble=False
        )
        return report.ttir.split("tt.func public @scaling_kernel(")[1].split("attributes")[0]

    assert "%N: i32 {tt.divisibility = 16" in types(4096)
    assert "%N: i32 loc" in types(4097)
    assert "%N" not in types(1)
    assert "%N: i64" in types(2**31)
    assert types(16).count("!tt.ptr<f16> {tt.divisibility = 16") == 2
    assert (
        types(16, Pointer("fp16", aligned=False)).count("!tt.ptr<f16> {tt.divisibility = 16") == 1
    )
    assert "%x_ptr: !tt.ptr<bf16> {tt.divisibility = 16" in types(
        16, torch.zeros(64, dtype=torch.bfloat16)
    )
    assert "%x_ptr: !tt.ptr<f32> loc" in types(16, torch.zeros(64)[1:])


def test_helpers_and_constants_come_along():
    report = compile_report(
        scaling_kernel, [Pointer("fp32"), Pointer("fp32"), 1024], {"BLOCK": 1024}
    )
    assert report.kernel == "scaling_kernel" and report.loads == {16: 2} == report.stores
    assert "ttg.num-warps" in report.ttgir and "STG.E.128" in report.sass


def test_a_plain_global_is_refused_in_a_jitted_function():
    with pytest.raises(CompileError) as caught:
        compile_report(reaching_kernel, [Pointer("fp32"), Pointer("fp32"), 8], {"BLOCK": 8})
    assert (
        caught.value.cause == "plain_global"
        and caught.value.file == "tests/compiler/test_compiler.py"
    )
    assert linecache.getline(__file__, caught.value.line).strip() == caught.value.quoted


def test_lines_lead_from_the_kernel_to_ptx_and_sass():
    report = compile_report(
        scaling_kernel, [Pointer("fp32"), Pointer("fp32"), 1024], {"BLOCK": 1024}
    )
    load = next(line for line in report.lines if "tl.load" in linecache.getline(__file__, line))
    ptx, sass = report.ptx.splitlines(), report.sass.splitlines()
    assert any("ld.global" in ptx[number - 1] for number in report.lines[load].ptx)
    assert any("LDG" in sass[number - 1] for number in report.lines[load].sass)


def test_a_reduction_belongs_to_the_line_that_calls_it():
    report = layer_norm(1024, rows=1, num_warps=4)
    source = compiler.source_text(layer_norm_resident_kernel)
    sums = [
        n for n, text in enumerate(source.text.split("\n"), source.first_line) if "tl.sum(" in text
    ]
    sass = report.sass.splitlines()
    assert len(sums) == 2
    for line in sums:  # five exchanges in a warp of 32 lanes, two between four warps
        assert sum("SHFL" in sass[number - 1] for number in report.lines[line].sass) == 7
    instructions = [number for number, text in enumerate(sass, 1) if text.endswith(";")]
    placed = sorted(number for lines in report.lines.values() for number in lines.sass)
    assert len(placed) == len(set(placed)) > 0.95 * len(instructions)


def test_calls_are_placed_without_changing_an_instruction(monkeypatch):
    ptx = layer_norm(256, rows=1, disassemble=False).ptx
    moved = assembly.at_call_sites(ptx, "course_kernel_0.py")
    calls = "@[ course_kernel_0.py", "inlined_at 1 "  # until Triton 3.7, and later
    assert (
        moved != ptx
        and any(call in ptx for call in calls)
        and not any(call in moved for call in calls)
    )

    def without_places(text):
        return [line for line in text.splitlines() if not line.strip().startswith(".loc")]

    assert without_places(moved) == without_places(ptx)
    assert assembly.at_call_sites(ptx, "another.py") == ptx


def test_the_text_of_a_kernel():
    source = compiler.source_text(scaling_kernel)
    assert source.name == "scaling_kernel" and source.file == "tests/compiler/test_compiler.py"
    assert linecache.getline(__file__, source.first_line).rstrip() == source.text.split("\n")[0]
    part = compiler.source_text(
        KernelSource("X = 1\n\ndef k(x):\n    pass\n\nY = 2\n", "k", "ex.py", first_line=10)
    )
    assert (part.text, part.first_line) == ("def k(x):\n    pass", 12)
    broken = KernelSource("def k(:\n", "k", "ex.py")
    assert compiler.source_text(broken).text == "def k(:"
    with pytest.raises(TypeError, match="is no kernel"):
        compiler.source_text(len)


@pytest.fixture
def damaged_triton(tmp_path, monkeypatch):
    """Triton's ptxas as installed, or however the test leaves it."""
    tool = tmp_path / "ptxas"
    tool.write_bytes(b"")
    monkeypatch.setattr(compilation, "TOOLS", tmp_path)
    monkeypatch.setattr(refusals, "TOOLS", tmp_path)
    descriptor = type(compilation.knobs.nvidia).__dict__["ptxas"]
    monkeypatch.setattr(descriptor, "default_path", str(tool))
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    return tool


def test_a_tool_without_its_execute_bit_is_named_with_the_command_that_gives_it_back(
    damaged_triton,
):
    with pytest.raises(compilation.NoTool) as caught:
        compilation._find_tool("ptxas")
    assert f"`chmod +x {damaged_triton}`" in str(caught.value) and "Permission denied" in str(
        caught.value
    )


def test_a_missing_tool_is_named_with_its_place_and_the_remedy(damaged_triton):
    damaged_triton.unlink()
    with pytest.raises(compilation.NoTool) as caught:
        compilation._find_tool("ptxas")
    assert f"is not there ({damaged_triton})" in str(caught.value) and "`make clean`" in str(
        caught.value
    )


def test_a_tool_that_says_no_version_is_named(damaged_triton):
    damaged_triton.write_text("#!/bin/sh\necho broken\n")
    damaged_triton.chmod(0o755)
    with pytest.raises(compilation.NoTool, match=r"does not say its version \(.*`make clean`"):
        compilation._find_tool("ptxas")


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file or directory"), PermissionError(13, "Permission denied")],
)
def test_a_tool_that_goes_while_the_server_is_warm_is_not_the_kernels_fault(
    damaged_triton, tmp_path, error, monkeypatch
):
    error.filename = str(damaged_triton)
    units = Units(machine._FIRST.units, machine._FIRST.name, tmp_path)
    said = refusals.explain(error, units, "")
    assert said.cause == "no_tool" and str(damaged_triton) in said.sentence
    monkeypatch.setattr(helper, "ask", lambda *asked: [CompilerAnswer(refusal=said)])
    with pytest.raises(
        EnvironmentFault, match="Triton's program ptxas cannot be started"
    ) as caught:
        report_of(GOOD)
    assert not isinstance(caught.value, CompileError)


def test_a_compiler_that_cannot_start_says_why_in_its_first_line(damaged_triton, monkeypatch):
    """The learner's file is not named, and no traceback is shown."""
    said = "course_lib.compiler.compilation.NoTool: whatever"
    failed = WorkerDied(1, f"Traceback (most recent call last):\n  File x\n{said}\n")
    monkeypatch.setattr(helper.jobs, "ask", lambda *rest, **named: (_ for _ in ()).throw(failed))
    with pytest.raises(EnvironmentFault, match=f"did not start \\({said}\\)") as caught:
        report_of(GOOD)
    assert "Traceback" not in str(caught.value) and "Traceback" in caught.value.printed


HEADER = (
    "import triton\nimport triton.language as tl\nimport numpy as np\nEPS ="
    " 1e-5\n\n@triton.jit\ndef k(x, y, N, B: tl.constexpr):\n    c = tl.arange(0, B)\n"
)
REFUSED = {  # body -> (cause, line of the body, words)
    "    tl.store(y + c, tl.load(x + c) + EPS)": (
        "plain_global",
        1,
        "`EPS` is a plain Python global",
    ),
    "    c = tl.arange(0, N)\n    tl.store(y + c, tl.load(x + c))": (
        "arange_runtime",
        1,
        "tl.constexpr",
    ),
    "    tl.store(y + c, tl.load(x + c) * np.float32(2))": ("foreign_value", 1, "numpy.float32"),
    "    l = []\n    l.append(tl.load(x + c))\n    tl.store(y + c, l[0])": (
        "list_method",
        2,
        "`.append`",
    ),
    "    acc = 0\n    for i in range(N):\n        acc = acc + tl.load(x + c)\n    tl.store(y + c, "
    "acc)": (
        "loop_carried_type",
        3,
        "loop-carried variable `acc` changes its type from int32 to a block of 8 fp32 in the loop",
    ),
    "    acc = 0\n    for i in range(N):\n        acc += 0.5\n    tl.store(y + c, acc)": (
        "loop_carried_type",
        3,
        "from int32 to fp32",
    ),
    "    for i in range(N):\n        if i == 2:\n            break\n        tl.store(y + c, i)": (
        "unsupported_statement",
        3,
        "`break`",
    ),
    "    tl.store(y + c, tl.load(x + c + B.to(tl.int64)))": (
        "constant_method",
        1,
        "a known number has no `.to`",
    ),
    "    v = tl.load(x + c)\n    tl.store(y, v[0])": ("block_index", 2, "`v[0]`"),
    "    tl.store(y, tl.load(x + c))": ("block_through_scalar_pointer", 1, "one pointer"),
    "    v = tl.load(x + c)\n    if v > 0:\n        tl.store(y + c, v)": (
        "block_condition",
        2,
        "`v > 0`",
    ),
    "    v = tl.load(x + c)\n    tl.store(y + c, v ** 2)": ("power", 2, "`**`"),
    "    p = q = 1.0\n    tl.store(y + c, tl.load(x + c) * p * q)": (
        "chained_assignment",
        1,
        "two lines",
    ),
    "    if N > 3:\n        v = tl.load(x + c)\n    tl.store(y + c, v)": (
        "undefined_name",
        3,
        "in line 9",
    ),
    "    tl.store(y + c, v)": ("undefined_name", 1, "`v` is not defined"),
    "    if N > 3:\n        v = 1.0\n    else:\n        v = 1\n    tl.store(y + c, v)": (
        "branch_type",
        1,
        "`v` is fp32",
    ),
    "    tl.store(y + c, tl.arange(0, 3))": ("other", 1, "power of 2"),
    "    tl.static_assert(B == 4, 'four')": ("other", 1, "four"),
    "    tl.store(y + c, tl.sum(x))": ("other", 1, ""),
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused_kernels_name_the_line(body):
    cause, line, words = REFUSED[body]
    source = KernelSource(HEADER + body + "\n", "k", "exercises/ex.py")
    with pytest.raises(CompileError) as caught:
        compile_report(source, [Pointer("fp32"), Pointer("fp32"), 8], {"B": 8})
    error = caught.value
    assert (error.cause, error.line, error.file) == (
        cause,
        HEADER.count("\n") + line,
        "exercises/ex.py",
    )
    assert words in error.sentence and error.quoted == body.splitlines()[line - 1].strip()
    assert (
        str(error).startswith(f"exercises/ex.py, line {error.line}: ")
        and "Traceback" not in str(error)
        and "\n    " + error.quoted in str(error)
    )


def test_an_argument_that_is_one_has_no_methods_and_can_be_cast():
    """A stride of 1 is a constant for the compiler, whatever it is in the other cases."""
    source = KernelSource(
        HEADER + "    tl.store(y + c, tl.load(x + c * N.to(tl.int64)))\n", "k", "ex.py"
    )
    arguments = [Pointer("fp32"), Pointer("fp32")]
    compile_report(source, [*arguments, 8], {"B": 8}, disassemble=False)
    with pytest.raises(CompileError, match="each argument that is 1 in a case") as caught:
        compile_report(source, [*arguments, 1], {"B": 8}, disassemble=False)
    assert caught.value.cause == "constant_method"
    cast = KernelSource(source.text.replace("N.to(tl.int64)", "tl.cast(N, tl.int64)"), "k", "ex.py")
    assert compile_report(cast, [*arguments, 1], {"B": 8}, disassemble=False).registers


def source_of(body, **options):
    return KernelSource(HEADER + body + "\n", "k", "ex.py", **options)


GOOD = source_of("    tl.store(y + c, tl.load(x + c))")
ARGUMENTS = [Pointer("fp32"), Pointer("fp32"), 8]


def report_of(source, **options):
    return compile_report(source, ARGUMENTS, {"B": 8}, disassemble=False, **options)


def test_a_text_may_start_at_any_line():
    with pytest.raises(CompileError) as caught:
        report_of(source_of("    tl.store(y + c, EPS)", first_line=101))
    assert caught.value.line == 109
    lines = report_of(source_of("    tl.store(y + c, 1.0)", first_line=101)).lines.keys()
    assert 109 in lines and lines <= {107, 108, 109}


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        ("import triton\ndef k(:\n", "syntax_error", 2),
        ("import triton\n\nvalue = nowhere\n", "undefined_name", 3),
        ("import triton\n\ndef k(x, y, N, B):\n    pass\n", "no_kernel", 1),
        (GOOD.text.replace("x, y, N,", "x, y, N, M,"), "arguments", 7),
        (GOOD.text.replace("x, y, N,", "x, y,"), "arguments", 7),
        (GOOD.text.replace("B", "C"), "arguments", 7),
    ],
)
def test_what_is_no_kernel_is_an_error_too(text, cause, line):
    with pytest.raises(CompileError) as caught:
        report_of(KernelSource(text, "k", "ex.py"))
    assert (caught.value.cause, caught.value.line) == (cause, line)
    assert "dynamic_func" not in str(caught.value) and "course-job-" not in str(caught.value)


def test_the_process_that_compiles_has_no_pytorch_and_can_get_it():
    has_none = 'import sys\nassert "torch" not in sys.modules, "it is loaded"\n'
    imports_it = "import torch\nassert torch.zeros(1).dtype is torch.float32\n"
    for text in (has_none, imports_it):
        assert report_of(KernelSource(text + GOOD.text, "k", "ex.py")).registers > 0


def test_a_kernel_from_a_notebook_cell():
    cell = "/tmp/ipykernel_7/1.py"
    text = (
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef cell_kernel(x, y, B:"
        " tl.constexpr):\n    c = tl.arange(0, B)\n    tl.store(y + c, {})\n"
    )

    def define(value):
        source = text.format(value)
        linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)
        space = {"LIMIT": 4, "__name__": "__main__"}
        exec(compile(source, cell, "exec"), space)
        return space["cell_kernel"]

    assert compile_report(define("tl.load(x + c)"), [HALF, HALF], {"B": 1024}).loads == {16: 1}
    with pytest.raises(CompileError, match="this cell, line 7: `LIMIT` is a plain") as caught:
        compile_report(define("LIMIT"), [HALF, HALF], {"B": 1024})
    assert caught.value.quoted == "tl.store(y + c, LIMIT)"


def test_a_kernel_defined_inside_a_function_keeps_its_closure():
    factor = tl.constexpr(2.0)

    @triton.jit
    def inner_kernel(x, y, B: tl.constexpr):
        c = tl.arange(0, B)
        tl.store(y + c, scaled(tl.load(x + c), factor) + PLAIN)

    with pytest.raises(CompileError) as caught:
        compile_report(inner_kernel, [HALF, HALF], {"B": 64})
    line = linecache.getline(__file__, caught.value.line)
    assert caught.value.cause == "plain_global" and line[caught.value.column - 1 :].startswith(
        "PLAIN"
    )


@pytest.fixture
def one_server():
    """No server waits yet: the first question starts the only one."""
    servers.stop_all()


def compiling_server() -> WarmServer:
    """The server that forks for each compilation."""
    (server,) = [waiting for waiting in servers._idle if waiting.key[0] == helper.KIND]
    return server


def test_a_second_report_comes_from_the_same_server(one_server):
    report_of(GOOD)
    first = compiling_server().pid
    started = time.perf_counter()
    compile_report(GOOD, ARGUMENTS, {"B": 8})
    print(f"second report: {time.perf_counter() - started:.2f} s")
    assert compiling_server().pid == first


def test_a_killed_server_is_replaced(one_server):
    report_of(GOOD)
    first = compiling_server().process
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert report_of(GOOD).registers > 0
    assert compiling_server().pid != first.pid


def test_a_crash_of_the_compiler_is_said_and_survived():
    crash = KernelSource(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n" + GOOD.text, "k", "ex.py"
    )
    with pytest.raises(CompileError, match="segmentation fault") as caught:
        report_of(crash)
    assert caught.value.cause == "crash" and caught.value.line == 9
    assert report_of(GOOD).registers > 0


def test_a_compiler_that_does_not_end_is_ended():
    endless = source_of(
        "    for i in tl.static_range(100000000):\n        tl.store(y + c, tl.load(x + c + i))"
    )
    report_of(GOOD)
    with pytest.raises(CompileError, match="longer than 1 seconds") as caught:
        report_of(endless, limit=1.0)
    assert caught.value.cause == "timeout"
    assert report_of(GOOD).registers > 0


def test_two_threads_get_their_own_answers():
    got, wrong = {}, []

    def ask(warps):
        for value in range(3):
            with contextlib.suppress(CompileError):
                report_of(source_of("    tl.store(y + c, v)"), num_warps=warps)
            report = report_of(source_of(f"    tl.store(y + c, {warps}{value}.0)"), num_warps=warps)
            if report.num_warps != warps or f"{10 * warps + value:e}" not in report.ttir:
                wrong.append((warps, value))
        got[warps] = report

    threads = [threading.Thread(target=ask, args=(warps,)) for warps in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [1, 2] and not wrong


def test_what_a_kernel_prints_does_not_reach_the_answers():
    assert report_of(KernelSource("print('{\"id\": 0}')\n" + GOOD.text, "k", "ex.py")).registers > 0


def test_the_server_ends_with_its_process(tmp_path):
    code = (
        "from course_lib import compiler\nfrom course_lib.sandbox import servers\nsource ="
        " compiler.KernelSource('import triton\\nimport triton.language as tl\\n@triton.jit\\ndef"
        " k(y):\\n    tl.store(y, 1.0)\\n', 'k', 'ex.py')\ncompiler.compile_report(source,"
        " [compiler.Pointer('fp32')], disassemble=False)\nprint(servers._idle[0].pid)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert not os.path.exists(f"/proc/{done.stdout.split()[-1]}") and not list(tmp_path.iterdir())


OWNER = """
import sys
from course_lib import compiler
text = sys.argv[1]
source = compiler.KernelSource(text, "k", "ex.py")
print("now", flush=True)
while True:
    compiler.compile_report(source, [compiler.Pointer("fp32")], {"B": 2048}, limit=float(sys.argv[2]))
    print("again", flush=True)
"""  # noqa: E501
SLOW = """import triton
import triton.language as tl
@triton.jit
def k(y, B: tl.constexpr):
    c = tl.arange(0, B)
    for i in tl.static_range(4):
        tl.store(y + c + i * B, tl.exp(tl.load(y + c + i)))
"""
ENDLESS = SLOW.replace("range(4)", "range(100000000)")


def start_owner(folder, text, limit="60") -> subprocess.Popen:
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.ROOT),
        "TMPDIR": str(folder),
        "COURSE_DEFER_CHOICE": "1",
    }
    command = [sys.executable, "-c", OWNER, text, limit]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert owner.stdout is not None and owner.stdout.readline() == "now\n"
    return owner


def wait_until_gone(folder, seconds: float) -> None:
    """Every process ends by itself; a folder that nobody was left to remove goes at the next
    start."""
    deadline = time.monotonic() + seconds
    while processes_under(folder):
        assert time.monotonic() < deadline, processes_under(folder)
        time.sleep(0.05)
    program = (
        "from course_lib.base.files import TemporaryFolder\nwith TemporaryFolder('course-job-'):\n "
        "   pass\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.ROOT),
        "TMPDIR": str(folder),
        "COURSE_DEFER_CHOICE": "1",
    }
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert not list(folder.iterdir())


def draw_moments(most: float) -> list:
    """Return the moments of a kill: None, as soon as there is a job; in the sweep also four drawn
    numbers of seconds."""
    return [
        None,
        *(
            pytest.param(random.Random(seed).uniform(0.0, most), marks=pytest.mark.sweep)
            for seed in range(4)
        ),
    ]


def wait_for_job(folder) -> None:
    while not list(folder.glob("course-job-*/0")):
        time.sleep(0.02)


@pytest.mark.parametrize("moment", draw_moments(4.0))
def test_a_killed_owner_leaves_no_helper_and_no_folder(moment, tmp_path):
    owner = start_owner(tmp_path, SLOW)
    if moment is None:
        wait_for_job(tmp_path)
    else:
        time.sleep(moment)  # while the helper starts, or compiles the first or a later time
    owner.kill()
    owner.communicate()
    wait_until_gone(tmp_path, 30)


def test_an_endless_compilation_ends_without_its_owner_too(tmp_path):
    owner = start_owner(tmp_path, ENDLESS, limit="1")
    wait_for_job(tmp_path)
    assert processes_under(tmp_path)  # before the kill: after it they may be gone at once
    owner.kill()
    owner.communicate()
    wait_until_gone(tmp_path, 60)


@pytest.mark.parametrize("moment", draw_moments(1.5))
@pytest.mark.parametrize("below", [False, True])
def test_a_killed_server_or_a_killed_program_below_it_is_survived(moment, below, one_server):
    helper.warm()
    first = psutil.Process(compiling_server().pid)
    victims: list[psutil.Process] = []

    def kill() -> None:
        if moment is not None:
            time.sleep(moment)
        while moment is None and not first.children():  # the job's first process
            time.sleep(0.005)
        with contextlib.suppress(psutil.NoSuchProcess):
            victims.extend(first.children(recursive=True)[-1:] if below else [first])
            for victim in victims:
                victim.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    source = KernelSource(SLOW + f"\n# {moment} {below}\n", "k", "ex.py")
    for _ in range(3):
        # which one depends on what was killed: the compiler, or nvdisasm
        with contextlib.suppress(CourseError):
            compile_report(source, [Pointer("fp32")], {"B": 2048})
    killer.join()
    for victim in victims:  # a signal that is sent has not yet arrived
        while victim.is_running() and victim.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    assert report_of(GOOD).registers > 0
    if not below:
        assert victims and compiling_server().pid != first.pid


def test_impossible_options_are_said():
    with pytest.raises(CourseError, match="sm_80, sm_86"):
        report_of(GOOD, arch="sm_30")
    with pytest.raises(CourseError, match="num_warps is 3"):
        report_of(GOOD, num_warps=3)
    with pytest.raises(TypeError, match="no argument of a kernel"):
        compile_report(GOOD, [object(), HALF, 8], {"B": 8})


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "num_warps", "warps"),
    [
        ("sm_90", 32, 0, 4, 64),  # nothing in the way
        ("sm_90", 64, 0, 4, 32),  # 65536 / (64 * 32)
        ("sm_90", 65, 0, 4, 28),  # 65 * 32 becomes 2304: 7 warps a register file
        ("sm_90", 255, 0, 8, 8),
        ("sm_90", 128, 0, 32, 0),  # 32 warps of 4096 registers are twice the file
        ("sm_90", 16, 0, 1, 32),  # at most 32 programs
        ("sm_86", 16, 0, 1, 16),  # at most 16
        ("sm_90", 32, 100 << 10, 4, 8),  # two programs' shared memory
        ("sm_86", 32, 100 << 10, 4, 0),  # more than a program can have
        ("sm_120", 40, 0, 8, 48),
    ],
)
def test_occupancy(arch, registers, shared, num_warps, warps):
    assert occupancy(arch, registers, shared, num_warps) == warps
