"""A pass in the interpreter is a pass only if the compiler takes every kernel, for all that the
cases launch it with."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.compiler import (
    CompileError,
    KernelSource,
    Pointer,
    Specialisation,
    check_compiles,
    compile_report,
    compile_reports,
    helper,
)
from course_lib.compiler.compile_job import CompileJob, CompilerAnswer
from course_lib.grading.check import check
from course_lib.grading.judging import compiled
from course_lib.grading.plans import make_plans
from course_lib.grading.submission.source import Kernels
from course_lib.sandbox import jobs

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a GPU's check compiles what it runs"
)

COPY = catalog.get("00a")
SOLUTION = (paths.SOLUTIONS / f"{COPY.file}.py").read_text(encoding="utf-8")
REFUSED = "    for _ in range(1):\n        break\n"  # the interpreter takes it
INDENTED = "".join(f"    {line}\n" for line in REFUSED.splitlines())
STORE = next(line for line in SOLUTION.splitlines() if "tl.store" in line)


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch):
    monkeypatch.setattr(compiled, "_accepted", type(compiled._accepted)())


def checked(tmp_path, exercise: catalog.Exercise, text: str):
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(text, encoding="utf-8")
    return check(exercise, file)


def blocks_of(exercise: catalog.Exercise) -> list[int]:
    return sorted({plan.constexprs["BLOCK"] for plan in make_plans(exercise, 0, None)})


@pytest.mark.parametrize("which", [0, -1])
def test_every_block_of_the_cases_is_compiled(which, tmp_path):
    block = blocks_of(COPY)[which]
    refused = f"    if BLOCK == {block}:\n{INDENTED}"
    verdict = checked(tmp_path, COPY, SOLUTION.replace(STORE, refused + STORE))
    assert (verdict.status, verdict.cause) == ("fail", "would_not_compile"), verdict.message
    assert verdict.place is not None and verdict.place.source.strip() == "break"


def test_every_kernel_that_the_cases_launch_is_compiled(tmp_path):
    exercise = next(
        e for e in catalog.exercises().values() if e.kind == "kernel" and len(e.entry_points) > 1
    )
    text = (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")
    last = re.search(
        rf"def {exercise.entry_points[-1]}\(.*?\n\):\n|def"
        rf" {exercise.entry_points[-1]}\([^\n]*\):\n",
        text,
        re.DOTALL,
    )
    assert last is not None
    body = text[last.end() :]
    # the first statement after the docstring
    line = re.search(r"^    \w+ = .*$", body, re.MULTILINE)
    assert line is not None
    text = text[: last.end()] + body[: line.start()] + REFUSED + body[line.start() :]
    verdict = checked(tmp_path, exercise, text)
    assert (verdict.status, verdict.cause) == ("fail", "would_not_compile"), verdict.message


def fail_with(error, times: int):
    left = [times]
    stock = compiled.check_compiles

    def compile_or_fail(*rest, **named):
        if left[0]:
            left[0] -= 1
            raise error
        return stock(*rest, **named)

    return compile_or_fail


@pytest.mark.parametrize("cause", ["crash", "timeout"])
def test_a_compiler_that_fails_once_is_asked_again(cause, tmp_path, monkeypatch):
    error = CompileError(cause, "the compiler itself crashed on this kernel", "x.py", 1, 1, "")
    monkeypatch.setattr(compiled, "check_compiles", fail_with(error, 1))
    assert checked(tmp_path, COPY, SOLUTION).passed


@pytest.mark.parametrize("cause", ["crash", "timeout"])
def test_a_compiler_that_fails_twice_makes_no_pass_and_blames_nobody(cause, tmp_path, monkeypatch):
    error = CompileError(cause, "the compiler itself crashed on this kernel", "x.py", 1, 1, "")
    monkeypatch.setattr(compiled, "check_compiles", fail_with(error, 2))
    verdict = checked(tmp_path, COPY, SOLUTION)
    assert verdict.status == "grader fault" and verdict.exit_code == 4
    assert (
        "neither as a pass nor as a fail" in verdict.message
        and "crashed on this kernel" in verdict.message
    )


def test_a_compiler_that_cannot_be_asked_makes_no_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(
        compiled,
        "check_compiles",
        fail_with(CourseError("the ptxas that comes with Triton cannot run"), 9),
    )
    with pytest.raises(EnvironmentFault, match=r"could not be asked .* no pass yet\. The ptxas"):
        checked(tmp_path, COPY, SOLUTION)


def compile_until_stopped(events: list[str]):
    def compile_slowly(*_rest, is_over, **_named):
        events.append("begun")
        deadline = time.monotonic() + 60
        while not is_over():
            assert time.monotonic() < deadline, "nobody stopped the compiler"
            time.sleep(0.01)
        events.append("stopped")

    return compile_slowly


def test_the_first_wrong_case_stops_the_compiler_of_a_person_who_waits(tmp_path, monkeypatch):
    events: list[str] = []
    monkeypatch.setattr(compiled, "check_compiles", compile_until_stopped(events))
    file = tmp_path / f"{COPY.file}.py"
    # a job that ends before the first look at its results has nobody to tell
    slow = f"    for _turn in range(1000):\n        x = x + 1\n{STORE}"
    file.write_text(SOLUTION.replace(STORE, slow), encoding="utf-8")
    told: list[str] = []
    assert check(COPY, file, tell_first_failure=told.append).status == "fail"
    deadline = time.monotonic() + 60
    while events and events[-1] != "stopped" and time.monotonic() < deadline:
        time.sleep(0.01)
    # stopped before it began, or after
    assert told and events in ([], ["begun", "stopped"])


def test_nothing_is_compiled_beside_the_cases_if_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "check_compiles", fail_with(AssertionError("compiled"), 1))
    assert checked(tmp_path, COPY, SOLUTION.replace(STORE, f"    x = x + 1\n{STORE}")).cause


def test_a_stopped_compiler_is_asked_anew_if_the_kernel_passes_all_the_same(monkeypatch):
    """Bytes that a job leaves early may change later: what was judged wrong then may be right."""
    events: list[str] = []
    monkeypatch.setattr(compiled, "check_compiles", compile_until_stopped(events))
    monkeypatch.setattr(compiled.Compilation, "_warm", lambda self: None)
    kernels = Kernels(SOLUTION.replace(STORE, REFUSED + STORE), COPY.entry_points)
    compilation = compiled.Compilation(kernels, make_plans(COPY), "mine.py")
    compilation.ask()
    compilation.stop()
    refusal = CompileError("unsupported", "the compiler refuses it", "x.py", 1, 1, "")
    monkeypatch.setattr(compiled, "check_compiles", fail_with(refusal, 9))
    assert compilation.find_refusal() is refusal


def test_the_same_kernel_is_compiled_once(tmp_path, monkeypatch):
    assert checked(tmp_path, COPY, SOLUTION).passed
    monkeypatch.setattr(compiled, "check_compiles", fail_with(AssertionError("compiled again"), 1))
    assert checked(tmp_path, COPY, SOLUTION).passed
    assert (
        checked(tmp_path, COPY, SOLUTION.replace(STORE, f"    x = x * 1\n{STORE}")).status
        == "grader fault"
    )


# ---- the process that compiles


TEXT = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(y_ptr, B: tl.constexpr):\n"
    "    tl.store(y_ptr, B)\n"
)
REPLACES_THE_COMPILER = """
import os
if os.environ.get("TRITON_INTERPRET") != "1":
    import gc
    import triton.compiler.code_generator as generator
    generator.CodeGenerator.visit_Name = lambda self, node: 1 / 0
    from course_lib.compiler import machine
    machine.compile_kernel = lambda *rest: 1 / 0
"""


def test_what_one_compilation_changes_is_gone_at_the_next():
    with pytest.raises(CompileError):
        compile_report(
            KernelSource(REPLACES_THE_COMPILER + TEXT, "k", "x.py"), [Pointer("fp32")], {"B": 8}
        )
    assert (
        compile_report(KernelSource(TEXT, "k", "x.py"), [Pointer("fp32")], {"B": 8}).registers > 0
    )


def test_specialisations_come_back_in_order():
    reports = compile_reports(
        KernelSource(TEXT, "k", "x.py"),
        [Specialisation([Pointer("fp32")], {"B": b}, w) for b, w in ((8, 4), (16, 8))],
    )
    assert [report.num_warps for report in reports] == [4, 8]
    assert reports[0].ttir != reports[1].ttir


def test_of_several_refusals_the_first_is_named():
    refused = "".join(
        f"    if B == {b}:\n        for _ in range(1):\n            break\n"
        for b in (8, 16, 32, 64)
    )
    text = TEXT.replace("    tl.store", refused + "    tl.store")
    asked = [Specialisation([Pointer("fp32")], {"B": b}) for b in (4, 128, 32, 16, 64, 8)]
    with pytest.raises(CompileError) as raised:
        check_compiles(KernelSource(text, "k", "x.py"), asked)
    assert raised.value.line == 1 + text.splitlines().index("    if B == 32:") + 2


def test_machine_code_is_made_for_every_dtype_of_every_pointer(monkeypatch):
    asked = []
    monkeypatch.setattr(
        helper,
        "ask",
        lambda kernels, limit, is_over=None: (
            asked.extend(kernels) or [CompilerAnswer() for _ in kernels]
        ),
    )
    pairs = [
        ("fp16", "fp16"),
        ("fp16", "fp16"),
        ("fp32", "fp16"),
        ("fp16", "fp32"),
        ("fp32", "fp32"),
        ("bf16", "fp32"),
    ]
    text = TEXT.replace("y_ptr, B", "x_ptr, y_ptr, B", 1)
    check_compiles(
        KernelSource(text, "k", "x.py"),
        [Specialisation([Pointer(x), Pointer(y)], {"B": 8 * n}) for n, (x, y) in enumerate(pairs)],
    )
    assert [kernel.through for kernel in asked] == [
        "cubin",
        "ttir",
        "cubin",
        "cubin",
        "ttir",
        "cubin",
    ]


def test_what_only_the_last_stages_refuse_is_refused():
    text = TEXT.replace(
        "    tl.store",
        "    tl.inline_asm_elementwise('no such instruction;', '=r,r', [tl.arange(0, B)], tl.int32,"
        " False, 1)\n    tl.store",
    )
    with pytest.raises(CompileError):
        check_compiles(
            KernelSource(text, "k", "x.py"), [Specialisation([Pointer("fp32")], {"B": 32})]
        )


REPORT = CompileJob("k", [], [], {})
FORGED = [
    None, 3, [], {}, [[]], [{}], [{"report": {}}], [{"report": None}],
    [{"refusal": {"cause": "x"}}], [{"report": {}, "refusal": {}}],
    [{"refusal": {"cause": 1, "sentence": "", "unit": 0, "line": 1, "column": 0}}], "report",
    [{"x": {}}] * 3, {"report": {}},
]  # fmt: skip


@pytest.mark.parametrize("answer", FORGED, ids=repr)
def test_an_answer_of_no_sense_is_no_answer(answer, monkeypatch):
    monkeypatch.setattr(jobs, "ask", lambda *_, **__: answer)
    with pytest.raises(helper.CompilerCrash, match="no answer that makes sense"):
        helper.ask([REPORT], 1.0)


def test_a_report_that_nobody_asked_for_is_no_answer(monkeypatch):
    monkeypatch.setattr(jobs, "ask", lambda *_, **__: [{}])
    assert helper.ask([replace(REPORT, through="cubin")], 1.0) == [CompilerAnswer()]
    with pytest.raises(helper.CompilerCrash, match="no answer that makes sense"):
        helper.ask([REPORT], 1.0)


@pytest.mark.parametrize(
    ("unit", "line", "column"), [(7, 1, 0), (-3, 1, 0), (0, -5, 0), (0, 10**9, -9)]
)
def test_a_forged_place_is_no_traceback(unit, line, column, monkeypatch):
    said = {
        "refusal": {
            "cause": "other",
            "sentence": "no",
            "unit": unit,
            "line": line,
            "column": column,
        }
    }
    monkeypatch.setattr(jobs, "ask", lambda *_, **__: [said])
    with pytest.raises(CompileError, match="no"):
        compile_report(KernelSource(TEXT, "k", "x.py"), [Pointer("fp32")], {"B": 8})


def test_a_flood_while_compiling_is_ended_and_said():
    flood = "print('x' * (20 << 20))\n" + TEXT
    with pytest.raises(CompileError, match="it writes megabytes while it is compiled"):
        compile_report(KernelSource(flood, "k", "x.py"), [Pointer("fp32")], {"B": 8}, limit=20)
