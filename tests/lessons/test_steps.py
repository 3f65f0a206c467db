"""Steps: what passes and what does not, in which words; that nothing of a cell gets out; and every
step of the course, solved and slipped."""

from __future__ import annotations

import ast
import html
import re
from dataclasses import replace

import numpy as np
import pytest
from english import find_english
from step_answers import RIGHT, Answer
from step_mistakes import MISTAKES, Mistake

import course_lib
from course_lib.authoring.notebooks import list_sources, read_source, run_unsolved
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.catalog import step_cells
from course_lib.cli import status
from course_lib.grading.judging.causes import CAUSES
from course_lib.learner import progress
from course_lib.lessons import stepping, steps
from course_lib.lessons.prediction import write_review
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try
from course_lib.sandbox import isolation, jobs

ROW = np.array([11.0, 12, 14, 15, 16])
QUESTION = "What does `x - mean` hold in a lane that loaded 0?"
CELLS = {
    "98-mend": (
        """@triton.jit
def norm_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    # BEGIN SOLUTION
    #: Make the lanes past the end add nothing to the variance.
    #| d = x - mean
    d = tl.where(mask, x - mean, 0.0)
    # END SOLUTION
    var = tl.sum(d * d) / N
    tl.store(y_ptr + cols, d / tl.sqrt(var + 1e-5), mask=mask)


step("98-mend")"""
    ),
    "98-centre": (
        """def centre(x, w):
    # BEGIN SOLUTION
    #: Take the mean away, then scale.
    return (x - x.mean()) * w
    # END SOLUTION


step("98-centre")"""
    ),
    "98-halves": (
        """def halves(x):
    middle = len(x) // 2
    # BEGIN SOLUTION
    #: Return both halves' sums.
    return x[:middle].sum(), x[middle:].sum()
    # END SOLUTION


step("98-halves")"""
    ),
    "98-block": (
        """# BEGIN SOLUTION
#: Choose a block for 13 numbers.
#| BLOCK = 13
BLOCK = 16
# END SOLUTION

step("98-block")"""
    ),
    "98-add": (
        """@triton.jit
def add_up_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    # BEGIN SOLUTION
    #: Add the block's sum to the total.
    tl.atomic_add(total_ptr, tl.sum(x))
    # END SOLUTION


step("98-add")"""
    ),
}


def is_wide_enough(block) -> str:
    if block & (block - 1):
        return "It is no power of two."
    return "" if block >= 13 else f"{13 - block} numbers have no lane."


STEPS = {
    step.id: step
    for step in (
        Step(
            "98-mend",
            kind="kernel",
            entry_point="norm_kernel",
            tries=tuple(
                Try(
                    what,
                    arguments={"x_ptr": In(row), "y_ptr": Out((len(row),)), "N": len(row)},
                    constexprs={"BLOCK": 8},
                    expected={"y_ptr": (row - row.mean()) / np.sqrt(row.var() + 1e-5)},
                )
                for what, row in (
                    ("eight numbers in a block of eight", np.arange(8.0)),
                    ("five numbers in a block of eight", ROW),
                )
            ),
            question=QUESTION,
            debrief="Three libraries shipped without it.",
        ),
        Step(
            "98-centre",
            kind="torch",
            entry_point="centre",
            tries=(
                Try("five numbers", arguments=(In(ROW), 2), expected=2 * (ROW - ROW.mean())),
                Try(
                    "a NaN among them",
                    arguments=(In([1.0, np.nan]), 2.0),
                    expected=[np.nan, np.nan],
                ),
            ),
            question="What is the mean of the result?",
            debrief="So it begins.",
        ),
        Step(
            "98-halves",
            kind="numpy",
            entry_point="halves",
            tries=(Try("five numbers", arguments=(In(ROW),), expected=(23.0, 45.0)),),
            question="Which half has the middle?",
            debrief="Halves merge.",
        ),
        Step(
            "98-block",
            kind="value",
            entry_point="BLOCK",
            accepts=is_wide_enough,
            question="How many lanes?",
            debrief="Rounded up.",
        ),
        Step(
            "98-add",
            kind="kernel",
            entry_point="add_up_kernel",
            tries=(
                Try(
                    "two programs",
                    arguments={"x_ptr": In(ROW), "total_ptr": Out((1,), start=0.0), "N": 5},
                    grid=(2,),
                    constexprs={"BLOCK": 4},
                    expected={"total_ptr": [68.0]},
                    orders=2,
                ),
            ),
            question="Who else writes there?",
            debrief="Atomics add up.",
        ),
    )
}


@pytest.fixture(autouse=True)
def learner(state, monkeypatch):
    monkeypatch.setattr(stepping, "_failed", type(stepping._failed)())


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A lesson of five steps beside the course's."""
    folder = tmp_path / "source"
    folder.mkdir()
    cells = "\n\n".join(f'# %% tags=["step"]\n{cell}' for cell in CELLS.values())
    (folder / "98_scratch.py").write_text(
        f"# %% [markdown]\n# # 98 Scratch\n\n{cells}\n\n# %%\nprint('step(\"98-none\")')\n"
    )
    monkeypatch.setattr(paths, "NOTEBOOK_SOURCES", folder)
    of_course = steps.read_lesson
    monkeypatch.setattr(
        steps, "read_lesson", lambda lesson: STEPS if lesson == "98" else of_course(lesson)
    )


def check(step_id: str, *changes: tuple[str, str], **names) -> str:
    """What is told of the solved cell, with changes in its text."""
    cell = step_cells.make_solved(step_id)
    for old, new in changes:
        assert old in cell, old
        cell = cell.replace(old, new)
    outcome = stepping.check_cell(STEPS[step_id], cell, names)
    assert words(outcome.page).startswith(outcome.text.split("\n")[0])
    return outcome.text


def words(page: str) -> str:
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)).split()
    )


@pytest.mark.parametrize("step_id", [step_id for step_id in STEPS if step_id != "98-block"])
def test_the_courses_answer_passes_and_the_cell_as_it_was_is_not_tried(scratch, step_id):
    assert check(step_id) == f"✓ Step {step_id}: passed\n{STEPS[step_id].debrief}"
    untouched = stepping.check_cell(STEPS[step_id], step_cells.make_unsolved(step_id), {})
    assert untouched.text.startswith(f"○ Step {step_id}: not yet\nThe part marked ")
    assert ("REPAIR" in untouched.text) == (step_id == "98-mend")
    kept = progress.read_steps()[step_id]
    assert kept.tries == 1 and kept.passed_at


@pytest.mark.parametrize(
    "changes",
    [
        [("x - mean, 0.0)", "x - mean, 0.0)  # and a comment")],
        [("tl.where(mask, x - mean, 0.0)", "(x - mean) * mask")],
        [("norm_kernel(x_ptr, y_ptr, N,", "norm_kernel(source, target, count,"),
            ("x_ptr", "source"), ("y_ptr", "target"), ("N\n", "count\n")],
        [("    ", "\t")],
        [("@triton.jit\n", "import triton\nimport triton.language as tl\nimport torch\nfrom "
                           "course_lib.lessons import step\n\n@triton.jit\n")],
        [("\n\n\nstep(", "\n\n\nprint(norm_kernel)\nstep('98-add')\nstep(")],
        [("@triton.jit\n", "@triton.jit\ndef centre(x, mean, mask):\n    return tl.where(mask, x "
                           "- mean, 0.0)\n\n\n@triton.jit\n"),
                           ("d = tl.where(mask, x - mean, 0.0)", "d = centre(x, mean, mask)")],
        [("d = tl.where(mask, x - mean, 0.0)", "d = ZERO + tl.where(mask, x - mean, 0.0)"),
            ("@triton.jit\n", "ZERO = tl.constexpr(0.0)\n\n\n@triton.jit\n")],
    ],
    ids=["comment", "product", "renamed parameters", "tabs", "imports", "two steps", "helper",
        "constant"],
)  # fmt: skip
def test_another_right_way_passes(scratch, changes):
    assert check("98-mend", *changes).startswith("✓ Step 98-mend: passed")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([("    var = ", "    print(mean)\n    var = ")], ["Line 8", "8 |     print(mean)"]),
        ([("    d = ", "    d = 0.0\n    for _ in range(N):\n        d += tl.zeros([BLOCK], "
                       "tl.float32)\n    d = ")],
                       ["loop-carried variable `d` changes its type", "9 |         d += "]),
        ([("d = tl.where(mask, x - mean, 0.0)", "d = ZERO + tl.where(mask, x - mean, 0.0)"),
            ("@triton.jit\n", "ZERO: tl.constexpr = 0.0\n\n\n@triton.jit\n")], ["ZERO", "Line 10"]),
    ],
    ids=["print", "loop-carried", "annotated global"],
)  # fmt: skip
def test_what_a_compiler_refuses_is_no_pass(scratch, changes, says):
    told = check("98-mend", *changes)
    assert not progress.read_steps() and QUESTION not in told
    if course_lib.MODE == "cpu":
        assert told.endswith(CAUSES["would_not_compile"].question)
        for part in ("not right yet", "a GPU's compiler refuses it", *says):
            assert part in told, told


def test_comments_docstrings_and_prints_beside_it_are_no_try(scratch):
    cell = step_cells.make_unsolved("98-mend")
    for text in (
        f"{cell}\nprint(1)",
        cell.replace("    cols", '    """Norm."""\n    cols', 1),
        f"import torch\n{cell}",
    ):
        assert "not yet" in stepping.check_cell(STEPS["98-mend"], text, {}).text
    assert stepping._failed["98-mend"] == 0


def test_a_wrong_value_is_named_with_try_element_line_and_question(scratch):
    told = check("98-mend", ("x - mean, 0.0", "x - mean, 1.0")).split("\n")
    assert told[:4] == ["✗ Step 98-mend: not right yet", "Wrong values.",
        "Tried: five numbers in a block of eight.", "expected y_ptr[0]: -1.40182"]  # fmt: skip
    assert told[4].startswith("got: -1.2") and "5 of 5 elements of `y_ptr` are wrong." in told
    assert "7 |     d = tl.where(mask, x - mean, 1.0)" in told and told[-1] == QUESTION


def test_without_a_fit_there_is_no_question(scratch, monkeypatch):
    in_a_given_line = check("98-mend", ("mean = tl.sum(x) / N", "mean = tl.sum(x) / (N + 2)"))
    of_another_shape = check(
        "98-centre", ("return (x - x.mean()) * w", "return ((x - x.mean()) * w).sum()")
    )
    mend = STEPS["98-mend"]
    tries = (replace(mend.tries[0], asked=False), *mend.tries[1:])
    monkeypatch.setitem(STEPS, "98-mend", replace(mend, tries=tries))
    in_a_try_without_spare_lanes = check("98-mend", ("x - mean, 0.0", "x * mean, 0.0"))
    for told in (in_a_given_line, of_another_shape, in_a_try_without_spare_lanes):
        assert "not right yet" in told and "?" not in told, told


def test_a_slip_is_known_by_what_comes_out_of_it(scratch, monkeypatch):
    slip = Slip(
        "x - mean, 0.0", "x - mean, 1.0", "lanes past the end hold 1", "What is the square of 1?"
    )
    monkeypatch.setitem(STEPS, "98-mend", replace(STEPS["98-mend"], slips=(slip,)))
    for same in ("(x - mean) * mask + (cols >= N)", "tl.where(cols >= N, 1, x - mean)"):
        told = check("98-mend", ("tl.where(mask, x - mean, 0.0)", same)).split("\n")
        assert told[1] == "Lanes past the end hold 1." and told[-1] == "What is the square of 1?"
    for other in ("x - mean, 1.01", "x - mean, mean"):
        assert check("98-mend", ("x - mean, 0.0", other)).endswith(QUESTION)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([(", mask=mask)\n\n", ")\n\n")],
            ["writes outside its output", "stores outside y_ptr: 3 of 8 lanes",
                "past the end of y_ptr", "Line 9"]),
        ([("cols, mask=mask, other=0.0", "cols")],
            ["reads outside its tensors", "loads outside x_ptr"]),
        ([("mask=mask, other=0.0", "mask=mask")],
            ["What a masked lane holds takes part", "five numbers in a block", "got: NaN",
                "5 |     x = tl.load(x_ptr + cols, mask=mask)"]),
        ([("tl.store(y_ptr + cols, d", "tl.store(x_ptr + cols, d")],
            ["An input was changed", "x_ptr is an input and is written at line 9"]),
        ([("    tl.store(y_ptr + cols, d / tl.sqrt(var + 1e-5), mask=mask)\n", "")],
            ["The output is never written"]),
        ([("mask=mask)\n\n", "mask=mask & (cols > 0))\n\n")],
            ["1 of 8 elements of y_ptr never written, from y_ptr[0] on"]),
        ([("tl.sum(x) / N", "tl.sum(x) / M")],
            ["it does not run", "`M` is used, and nothing in the kernel defines it", "Line 6",
                "6 |     mean = tl.sum(x) / M"]),
        ([("var = tl", "var = = tl")], ["it does not run", "This is not valid Python", "Line 8"]),
        ([("d * d", "d * tl.arange(0, 16)")], ["Two blocks do not fit together", "Line 8",
            "Along axis 0 one block has 8 elements and the other 16."]),
        ([("@triton.jit\n", "")], ["`norm_kernel` has lost its decorator"]),
        ([("norm_kernel", "other_kernel")], ["This cell has no kernel named `norm_kernel`"]),
        ([("    var", "    while N > 0:\n        mean = mean + 1\n    var")],
            ["The code takes too long", "stopped after the time limit"]),
        ([("x - mean, 0.0", "x * mean, 0.0"), ("    var", "    print('lane', mean)\n    var")],
            ["Wrong values"]),
    ],
    ids=["store outside", "load outside", "no other", "input", "never", "partly", "name", "syntax",
        "shapes", "decorator", "renamed", "endless", "prints"],
)  # fmt: skip
def test_what_is_wrong_is_said_and_no_answer_with_it(scratch, changes, says, request):
    if course_lib.MODE == "gpu" and request.node.callspec.id in (
        "store outside",
        "load outside",
        "input",
        "shapes",
        "endless",
    ):
        pytest.skip(
            "these are the interpreter's words; the compiler quotes the cell, and takes away a loop"
            " that does nothing"
        )
    told = check("98-mend", *changes)
    for part in says:
        assert part in told, told
    assert (
        "tl.where(mask, x - mean, 0.0)" not in told
        and "`course reset`" not in told
        and not progress.read_steps()
    )


def test_what_a_cell_printed_is_shown_when_it_failed(scratch):
    cell = step_cells.make_solved("98-centre").replace("return", "print('<b>seen')\n    return -")
    page = stepping.check_cell(STEPS["98-centre"], cell, {}).page
    assert (
        "What it printed in the check" in page and "&lt;b&gt;seen" in page and "<b>seen" not in page
    )


def test_an_answer_is_offered_after_the_second_failure_and_after_a_pass(scratch):
    wrong = step_cells.make_solved("98-mend").replace("x - mean, 0.0", "x, 0.0")
    cells = (
        step_cells.make_unsolved("98-mend"),
        wrong,
        step_cells.make_unsolved("98-mend"),
        wrong,
        step_cells.make_unsolved("98-mend"),
    )
    pages = [stepping.check_cell(STEPS["98-mend"], cell, {}).page for cell in cells]
    answer = (
        "<details><summary>Show one answer</summary><pre>d = tl.where(mask, x - mean,"
        " 0.0)</pre></details>"
    )
    assert [answer in page for page in pages] == [False, False, False, True, False]
    passed = stepping.check_cell(STEPS["98-mend"], step_cells.make_solved("98-mend"), {}).page
    assert "<summary>One answer</summary>" in passed and progress.read_steps()["98-mend"].tries == 3


@pytest.mark.parametrize(
    ("step_id", "change", "says"),
    [
        ("98-centre", ("* w", "* w * w"),
            ["Wrong values", "expected result[0]: -5.2", "got: -10.4", "`result` are wrong",
                "2 |     return"]),
        ("98-centre", ("x.mean()", "x.nanmean()"),
            ["Tried: a NaN among them", "expected result[0]: NaN"]),
        ("98-centre", ("return", "x.add_(1)\n    return"),
            ["An input was changed", "x is an input and is changed in place"]),
        ("98-centre", ("return", "return None, "), ["asked for: result"]),
        ("98-centre", ("x.mean()", "x.means()"), ["not right yet", "raises an error", "means"]),
        ("98-halves", ("middle:", "middle + 1:"), ["expected result 2: 45", "got: 31"]),
        ("98-halves", (", x[middle:].sum()", ""), ["asked for: result 1, result 2"]),
        ("98-halves", ("middle = len(x) // 2", "x[0], middle = 0, len(x) // 2"),
            ["An input was changed"]),
    ],
)  # fmt: skip
def test_a_function_that_is_wrong_is_told_so(scratch, step_id, change, says):
    told = check(step_id, change)
    for part in says:
        assert part in told, told


@pytest.mark.parametrize(
    ("step_id", "change"),
    [
        (
            "98-centre",
            ("return (x - x.mean()) * w", "return ((x.double() - x.double().mean()) * w)"),
        ),
        (
            "98-centre",
            ("return (x - x.mean()) * w", "c = x - x.mean()\n    return torch.mul(c, w)"),
        ),
        (
            "98-halves",
            (
                "x[:middle].sum(), x[middle:].sum()",
                "[float(x[:middle].sum()), x[middle:].astype(np.float64).sum()]",
            ),
        ),
    ],
)
def test_a_function_may_compute_in_another_dtype(scratch, step_id, change):
    assert "passed" in check(step_id, change)


def test_programs_that_overwrite_each_other_are_caught(scratch):
    told = check(
        "98-add",
        (
            "tl.atomic_add(total_ptr, tl.sum(x))",
            "tl.store(total_ptr, tl.load(total_ptr) + tl.sum(x))",
        ),
    )
    assert "not right yet" in told and "A race." in told and told.endswith(CAUSES["race"].question)


@pytest.mark.parametrize(
    ("cell", "names", "says"),
    [
        ("BLOCK = 32", {"BLOCK": 32}, "✓ Step 98-block: passed\nRounded up."),
        ("# mine\nBLOCK = 8 + 8", {"BLOCK": 16}, "✓ Step 98-block: passed"),
        (
            "BLOCK = 8",
            {"BLOCK": 8},
            (
                "✗ Step 98-block: not right yet\n`BLOCK` is `8`. 5 numbers have no lane.\nHow many"
                " lanes?"
            ),
        ),
        ("BLOCK = '16'", {"BLOCK": "16"}, "This step cannot use a value of type `str`"),
        ("BLOCK = None", {"BLOCK": None}, "This step cannot use a value of type `NoneType`"),
        ("block = 16", {"BLOCK": 13, "block": 16}, "This cell gives `BLOCK` no value."),
        ("BLOCK = 13", {"BLOCK": 13}, "○ Step 98-block: not yet\nThe part marked REPAIR"),
    ],
)
def test_a_value_is_judged_by_its_own_words(scratch, cell, names, says):
    assert says in stepping.check_cell(STEPS["98-block"], f'{cell}\n\nstep("98-block")', names).text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("return (x - x.mean()) * w", "return ['a', 'b']"), "a list that is no array of numbers"),
        (
            ("return (x - x.mean()) * w", "return [1.0, [2.0]]"),
            "a list that is no array of numbers",
        ),
        (("return (x - x.mean()) * w", "return [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"), "shape (7,)"),
        (("return (x - x.mean()) * w", "return True"), "`int`"),
    ],
)
def test_a_list_is_an_array_only_where_it_holds_its_numbers(scratch, change, says):
    told = check("98-centre", change)
    assert "does not return what it should" in told and says in told, told


@pytest.mark.parametrize(
    "attack",
    [
        "open({target!r}, 'w').write('x')",
        "torch.save(x, {target!r})",
        "import pathlib\n    pathlib.Path({target!r}).write_text('x')",
        "getattr(torch, 'sa' + 've')(x, {target!r})",
        "x.numpy().tofile({target!r})",
    ],
)
def test_a_step_writes_no_files_of_the_person(scratch, tmp_path, attack):
    target = tmp_path / "written"
    told = check("98-centre", ("return", f"{attack.format(target=str(target))}\n    return"))
    assert told.startswith("✗ Step 98-centre") and "Error" in told and "Line " in told, told
    assert not target.exists()


def test_code_that_is_not_needed_does_not_run_in_the_check(scratch, tmp_path):
    target = tmp_path / "written"
    assert "passed" in check(
        "98-mend", ("@triton.jit\n", f"open({str(target)!r}, 'w').write('x')\n\n\n@triton.jit\n")
    )
    assert not target.exists()


def test_without_a_sandbox_steps_run_and_lines_are_those_of_the_cell(scratch, monkeypatch):
    monkeypatch.setattr(jobs, "BEST_TIER", isolation.LIMITS)
    for step_id in ("98-mend", "98-centre", "98-halves"):
        assert check(step_id).startswith("✓"), step_id
    told = check("98-centre", ("return", "held = nothing\n    return"))
    assert told.startswith("! Step 98-centre") and "Line 2" in told and "held = nothing" in told


def test_a_fault_of_the_machine_or_of_the_course_is_nobodys_failure(scratch, monkeypatch):
    def refuse(*_):
        raise EnvironmentFault("the disk is full")

    monkeypatch.setattr(stepping, "check_step", refuse)
    told = check("98-mend")
    assert told == "? Step 98-mend: not checked\nthe disk is full"


def test_a_bug_of_the_grader_is_told_as_one(scratch, monkeypatch):
    from course_lib.grading import steps as grading_steps

    def fail(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(grading_steps, "_check", fail)
    told = check("98-mend")
    assert told.startswith(
        "? Step 98-mend: not checked\nthe grader itself failed (ZeroDivisionError: oops)"
    )
    assert stepping._failed["98-mend"] == 0


def test_a_full_disk_costs_the_record_and_not_the_pass(scratch, monkeypatch):
    def refuse(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(progress, "note_step", refuse)
    told = check("98-block", BLOCK=16)
    assert (
        told.startswith("✓")
        and "It could not be kept in your progress (No space left on device)." in told
    )


def test_status_and_review_count_what_was_passed(scratch):
    assert status.tell_steps() == []
    check("98-block", BLOCK=16)
    progress.note_step("97-gone", 1)
    assert status.tell_steps() == ["Steps passed: lesson 98 1 of 5."]
    assert "<p>1 of 5 steps passed.</p>" in write_review("98")


def test_a_step_belongs_into_a_cell(scratch):
    with pytest.raises(
        CourseError, match=r"step\('98-mend'\) checks the cell of a notebook .* `make lab`"
    ):
        stepping.step("98-mend")
    with pytest.raises(
        CourseError, match=r"there is no step '98-mned'. Lesson 98 has 98-mend, 98-centre"
    ):
        stepping.step("98-mned")


@pytest.fixture
def shell(scratch):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    made = InteractiveShell.instance()
    made.run_cell(
        "import triton, triton.language as tl\nfrom course_lib.lessons import step",
        store_history=True,
    )

    def run(cell: str, *, whole: bool = False) -> list[str]:
        with capture_output() as captured:
            made.run_cell(cell, store_history=True).raise_error()
        told = [output.data["text/plain"] for output in captured.outputs]
        return told if whole else [text.split("\n")[0] for text in told]

    yield run
    InteractiveShell.clear_instance()


def test_a_cell_is_checked_as_it_runs(shell):
    solved, block = step_cells.make_solved("98-mend"), step_cells.make_solved("98-block")
    mended, unset = "✓ Step 98-mend: passed", "○ Step 98-block: not yet"
    assert shell(solved) == [mended] and shell(solved) == [mended]
    assert shell(f"{solved};\nprint('more')") == [mended]
    assert shell(f"{solved}\n{step_cells.make_unsolved('98-block')}") == [mended, unset]
    assert shell(f"\n\n{block}\n") == ["✓ Step 98-block: passed"]
    # nothing above it, whatever ran before
    assert shell('step("98-mend")') == ["! Step 98-mend: it does not run"]
    assert shell(f"{step_cells.make_unsolved('98-block')}".replace("BLOCK", "block")) == [
        "✗ Step 98-block: not right yet"
    ]
    assert shell(solved.rpartition("step(")[0]) == []


def test_lines_have_the_numbers_that_the_learner_sees(shell):
    wrong = step_cells.make_solved("98-mend").replace("tl.sum(x) / N", "tl.sum(x) / n")
    for above in ("", "\n\n", "# mine\n"):
        number = 6 + above.count("\n")
        assert f"{number} |     mean = tl.sum(x) / n" in shell(f"{above}{wrong}", whole=True)[0]


@pytest.mark.parametrize(
    "cell",
    [
        "%time 1\n{}",
        "# \u2028 \U0001f600\n{}",
        "{}\n\n\n",
        "{}  # checks it",
        "if True:\n    pass\n{}",
        "def later():\n    return 1\n{}\nlater()",
    ],
)
def test_what_else_stands_in_a_cell_does_no_harm(shell, cell):
    assert shell(cell.format(step_cells.make_solved("98-mend")))[0] == "✓ Step 98-mend: passed"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Step("mend", "value", "B", "q", "d", accepts=str), "an id is the lesson's number"),
        (lambda: Step("98-a", "guess", "B", "q", "d", accepts=str), "kind is one of kernel"),
        (lambda: Step("98-a", "value", "B", "q", "d"), "a value has `accepts`"),
        (lambda: Step("98-a", "numpy", "f", "q", "d"), "at least one Try"),
        (
            lambda: Step("98-a", "numpy", "f", " ", "d", (Try("t", (1,), 1.0),)),
            "must say something",
        ),
        (lambda: Step("98-a", "numpy", "f", "q", "d", Try("t", (1,), 1.0)), "is a comma missing"),
        (
            lambda: Step("98-a", "numpy", "f", "q", "d", (Try("t", (1,), 1.0),), slips=("a", "b")),
            "a tuple of Slip",
        ),
        (
            lambda: Step("98-a", "numpy", "f", "q", "d", (Try("t", {"x": In([1])}, 1.0),)),
            "arguments are a tuple",
        ),
        (
            lambda: Step("98-a", "kernel", "k", "q", "d", (Try("t", (In([1]),), {"y": [1]}),)),
            "are dicts",
        ),
        (
            lambda: Step(
                "98-a", "kernel", "k", "q", "d", (Try("t", {"y": Out((2,))}, {"z": [1, 2]}),)
            ),
            "an entry for each Out",
        ),
        (
            lambda: Step(
                "98-a", "kernel", "k", "q", "d", (Try("t", {"y": Out((2,))}, {"y": [1]}),)
            ),
            "not the shape of its Out",
        ),
        (
            lambda: Step(
                "98-a",
                "kernel",
                "k",
                "q",
                "d",
                (Try("t", {"y": Out((2,)), "n": "2"}, {"y": [1, 2]}),),
            ),
            "an argument is an In",
        ),
        (lambda: Slip("a", "b", "a cause of its own"), "needs a question"),
        (lambda: Slip("a", "b", question="Why?"), "a question needs a cause"),
        (lambda: In([[1], [2, 3]]), "numbers of one shape"),
        (lambda: In([1], dtype="float32"), "dtype is one of fp32"),
        (lambda: Out(5), "has to be a tuple"),
        (lambda: Out((2, 3), stride=2), "a stride is for matrices"),
        (lambda: Try("", (1,), 1.0), "has to say in words"),
        (lambda: Try("t", (1,), 1.0, grid=2), "a tuple of one to three numbers"),
    ],
)
def test_an_authors_mistake_is_named(make, says):
    with pytest.raises(CourseError, match=re.escape(says)):
        make()


def test_strided_rows_and_halves_are_judged_where_they_lie(scratch, monkeypatch):
    cell = """@triton.jit
def copy_kernel(x_ptr, y_ptr, stride_x, stride_y, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, x / 3, mask=cols < N)
"""
    monkeypatch.setattr(step_cells, "make_solved", lambda _: cell)
    values = np.arange(6.0).reshape(2, 3)
    task = Step(
        "98-add", "kernel", "copy_kernel", "q", "d",
        (Try("rows apart", {"x_ptr": In(values, "fp16", 7), "y_ptr": Out((2, 3), "fp16", 5),
            "stride_x": 7, "stride_y": 5, "N": 3},
             {"y_ptr": values / 3}, (2,), {"BLOCK": 4}),),
    )  # fmt: skip
    assert stepping.check_cell(task, cell, {}).passed
    assert (
        "writes outside its output"
        in stepping.check_cell(task, cell.replace(" / 3, mask=cols < N", " / 3"), {}).text
    )
    assert not stepping.check_cell(task, cell.replace("row * stride_y", "row * N"), {}).passed


# a lesson of its own, which brings its step along: the kernel that runs it knows only those of the
# course
PROOF = """# %%
import course_lib
import triton
import triton.language as tl
from course_lib.base import paths
from course_lib.lessons import step, steps
from course_lib.lessons.steps.step import In, Out, Step, Try
from pathlib import Path

paths.NOTEBOOK_SOURCES = Path({folder!r})
of_copy = Step(
    "98-copy", "kernel", "copy_kernel", "Where?", "There.",
    (Try("eight", {{"x_ptr": In(range(8)), "y_ptr": Out((8,))}}, {{"y_ptr": range(8)}}),),
)
steps.read_lesson = lambda _: {{"98-copy": of_copy}}

# %% tags=["step"]
@triton.jit
def copy_kernel(x_ptr, y_ptr):
    cols = tl.arange(0, 8)
    # BEGIN SOLUTION
    #: Copy.
    #| tl.store(y_ptr, tl.load(x_ptr))
    {answer}
    # END SOLUTION


step("98-copy")

# %%
print("went on")
"""


@pytest.mark.slow
def test_a_proof_fails_where_the_courses_answer_does_not_pass_and_a_page_goes_on(tmp_path):
    from nbclient.exceptions import CellExecutionError

    source = tmp_path / "98_copy.py"
    right = "tl.store(y_ptr + cols, tl.load(x_ptr + cols))"
    source.write_text(PROOF.format(folder=str(tmp_path), answer=right))
    page, proof = read_source(source), read_source(source, proof=True)
    run_unsolved(proof)
    run_unsolved(page)
    told = [cells[1].outputs[0]["data"]["text/plain"] for cells in (proof.cells, page.cells)]
    assert told[0] == "✓ Step 98-copy: passed\nThere." and told[1].startswith(
        "○ Step 98-copy: not yet"
    )
    assert "stream" in [output.output_type for output in page.cells[2].outputs]
    source.write_text(
        PROOF.format(folder=str(tmp_path), answer=right.replace("x_ptr + cols", "x_ptr + 7 - cols"))
    )
    with pytest.raises(
        CellExecutionError, match="step 98-copy: the course's own answer does not pass"
    ):
        run_unsolved(read_source(source, proof=True))


# every step of the course

IDS = [
    (source, step_id) for source in list_sources() for step_id in steps.read_lesson(source.name[:2])
]
FORMS_IN_EACH_RUN = 2  # of the right answers of each step; the others run in `make sweep`
each_step = pytest.mark.parametrize("step_id", [step_id for _, step_id in IDS])


@pytest.mark.parametrize("source", list_sources(), ids=lambda s: s.stem)
def test_a_page_has_the_steps_of_its_lesson_once_each_and_in_order(source):
    assert step_cells.list_ids(source.name[:2]) == list(steps.read_lesson(source.name[:2]))
    for cell in read_source(source).cells:
        if step_cells._CALL.search(cell.source):
            assert "step" in cell.metadata.get("tags", []) and cell.source.rstrip().endswith(")")
            lines = cell.source.splitlines()
            assert len(lines) <= 15 and max(map(len, lines)) <= 100, (
                f"too large to read:\n{cell.source}"
            )
            assert re.match(r"step\(", lines[-1]), "step is the last line"


@each_step
def test_the_unsolved_cell_of_a_step_is_not_tried(step_id):
    """The solved one passes in the lesson's proof, which asserts it:
    test_a_lesson_runs_under_nbval."""
    wanted, unsolved = steps.find(step_id), step_cells.make_unsolved(step_id)
    outcome = stepping.check_cell(wanted, unsolved, run_value(wanted, unsolved))
    assert outcome.text.startswith("○"), "not yet"


@each_step
def test_each_slip_fails_with_its_cause_and_its_question(step_id, monkeypatch):
    wanted, solved = steps.find(step_id), step_cells.make_solved(step_id)
    assert wanted.slips, "without a wrong answer nothing shows that the step tells right from wrong"
    # a slip may be what is there to be repaired
    monkeypatch.setattr(step_cells, "make_unsolved", lambda _: "")
    for slip in wanted.slips:
        assert slip.right in solved, f"{slip.right!r} is no text of the solution"
        cell = solved.replace(slip.right, slip.wrong)
        told = stepping.check_cell(wanted, cell, run_value(wanted, cell)).text.split("\n")
        assert told[0].startswith("✗"), f"{slip.wrong}: {told}"
        if slip.cause:
            _, headline, question = slip.word_for(wanted.kind)
            assert told[1] == headline and told[-1] == question, f"{slip.wrong}: {told}"
        elif wanted.kind != "value":
            assert told[1] != "Wrong values.", f"{slip.wrong} needs a cause: the run shows none"


@each_step
def test_what_is_to_be_repaired_fails_and_is_asked_about(step_id, monkeypatch):
    wanted, unsolved = steps.find(step_id), step_cells.make_unsolved(step_id)
    if "# REPAIR" not in unsolved:
        pytest.skip("its cell holds no wrong answer")
    monkeypatch.setattr(step_cells, "make_unsolved", lambda _: "")
    told = stepping.check_cell(wanted, unsolved, run_value(wanted, unsolved)).text
    assert told.startswith("✗") and "?" in told.split("\n")[-1], told


@each_step
def test_an_answer_without_one_of_its_lines_does_not_pass(step_id):
    wanted, solved = steps.find(step_id), step_cells.make_solved(step_id)
    if wanted.kind == "value":
        pytest.skip(
            "Python itself refuses the rest of the cell, or `accepts` is asked about nothing"
        )
    answer = [line.strip() for line in step_cells.read_answer(step_id).splitlines()]
    for line in (
        line for line in solved.splitlines(keepends=True) if line.strip() and line.strip() in answer
    ):
        assert not stepping.check_cell(wanted, solved.replace(line, "", 1), {}).passed, (
            f"without {line.strip()!r}"
        )


@each_step
def test_a_function_that_hands_back_an_argument_does_not_pass(step_id):
    wanted, solved = steps.find(step_id), step_cells.make_solved(step_id)
    if wanted.kind not in ("torch", "numpy"):
        pytest.skip("no function")
    for name in step_cells.list_parameters(step_id, wanted.entry_point):
        cell = re.sub(r"return .*", f"return {name}", solved)
        assert not stepping.check_cell(wanted, cell, {}).passed, cell


@each_step
def test_each_step_has_right_answers_in_other_forms(step_id):
    assert len(RIGHT[step_id]) >= 3
    for answer in RIGHT[step_id]:
        assert change_answer(step_id, answer) != step_cells.make_solved(step_id)


@pytest.mark.parametrize(
    ("step_id", "number"),
    [
        pytest.param(
            step_id, number, marks=[pytest.mark.sweep] if number >= FORMS_IN_EACH_RUN else []
        )
        for _, step_id in IDS
        for number in range(len(RIGHT[step_id]))
    ],
)
def test_a_right_answer_in_another_form_passes(step_id, number):
    """Behaviour is judged: another order, a helper variable, an equivalent expression, a list of
    numbers for an array.
    """
    wanted, cell = steps.find(step_id), change_answer(step_id, RIGHT[step_id][number])
    told = stepping.check_cell(wanted, cell, run_value(wanted, cell)).text
    assert told.startswith("✓"), f"{cell}\n{told}"


@pytest.mark.parametrize(
    "mistake",
    [
        # two of three run in `make sweep`
        pytest.param(mistake, marks=[pytest.mark.sweep] if number % 3 else [])
        for number, mistake in enumerate(MISTAKES)
    ],
    ids=lambda mistake: mistake.step,
)
def test_a_mistake_is_named_and_its_line_is_shown(mistake: Mistake):
    wanted, cell = steps.find(mistake.step), step_cells.make_solved(mistake.step)
    for old, new in mistake.changes:
        assert old in cell, f"{old!r} is no text of the solution"
        cell = cell.replace(old, new)
    told = stepping.check_cell(wanted, cell, {}).text.split("\n")
    shown = [text for text in told if re.match(r"\d+ \|", text)]
    assert told[1] == mistake.says, told
    assert shown and mistake.line in shown[0], told


@pytest.fixture
def chinese(monkeypatch):
    from course_lib.grading import steps as grading_steps

    monkeypatch.setenv("COURSE_LANG", "zh")
    monkeypatch.setattr(grading_steps, "_slipped", {})
    steps.read_lesson.cache_clear()
    yield
    steps.read_lesson.cache_clear()


WRONG_FORMS = ("None", "'text'", "[]", "[None, 1.5]", "{}", "-1e9")


@each_step
def test_a_verdict_in_chinese_has_no_english_sentence(step_id, chinese, monkeypatch):
    """The words of known causes are in the catalogs, so where no slip lacks one, the first will
    do."""
    wanted, solved = steps.find(step_id), step_cells.make_solved(step_id)
    monkeypatch.setattr(step_cells, "make_unsolved", lambda _: "")
    slips = [slip for slip in wanted.slips if not slip.cause] or wanted.slips[:1]
    cells = [solved.replace(slip.right, slip.wrong) for slip in slips]
    if wanted.kind == "value":
        call = f'step("{step_id}")'
        cells += [f"{wanted.entry_point} = {value}\n{call}" for value in WRONG_FORMS]
    for cell in cells:
        told = stepping.check_cell(wanted, cell, run_value(wanted, cell)).text
        words = re.sub(r"^ *\d* \|.*$", "", told, flags=re.MULTILINE)  # without lines of the cell
        assert told.startswith("✗") and find_english(words) == [], told
    assert all(re.search("[\u3000-\uffef]", attempt.what) for attempt in wanted.tries)


def test_on_a_gpu_the_interpreter_compares_with_the_known_mistakes(monkeypatch):
    """A compiler would take a second for each of them."""
    from course_lib.grading import steps as grading_steps

    find, modes = grading_steps._find_slip, []

    def find_as_on_a_gpu(task, kernels, judged, plans, mode, limits):
        return find(task, kernels, judged, plans, "gpu", limits)

    def run(kernels, plans, mode, *rest):
        modes.append(mode)
        return of_course(kernels, plans, mode, *rest)

    of_course = grading_steps.runner.run
    monkeypatch.setattr(grading_steps, "_find_slip", find_as_on_a_gpu)
    monkeypatch.setattr(grading_steps.runner, "run", run)
    monkeypatch.setattr(grading_steps, "_slipped", {})
    cell = step_cells.make_solved("01-rows").replace("mask=mask, other=0.0", "mask=mask")
    told = stepping.check_cell(steps.find("01-rows"), cell, {}).text
    assert "What a masked lane holds takes part" in told
    # the check itself, then the learner's kernel and the mistakes
    assert set(modes[-2:]) == {"cpu"}


@pytest.mark.skipif(course_lib.MODE == "gpu", reason="the compiler says it in other words")
@pytest.mark.parametrize(
    ("step_id", "right", "wrong", "says"),
    [
        ("08-tile", "rows[:, None] * stride + cols[None, :]", "rows * stride + cols",
            "Along axis 0 one block has 2 elements and the other 4."),
        ("08-broadcast", "x - mean[:, None]", "x[:, None] - mean",
            "The addresses are a block of shape (4, 4), and what meets them there, a value or a "
            "mask, makes the shape (4, 4, 4)."),
        ("02-save", "tl.store(peak_ptr + row, peak)", "tl.store(peak_ptr + row, x)",
            "There is one address for a whole block of numbers: `value` is a block"),
        ("13-chunk", "(rows < M) & (within < rows_a_chunk)", "rows < M & within < rows_a_chunk",
            "compares with `M & within`; write each comparison in parentheses"),
        ("05-wide", "(row * stride_x).to(tl.float32)", "(0 < row < 3).to(tl.float32)",
            "Triton does not compile a comparison of more than two"),
    ],
)  # fmt: skip
def test_an_error_of_triton_is_explained(step_id, right, wrong, says):
    solved = step_cells.make_solved(step_id)
    assert right in solved
    told = stepping.check_cell(steps.find(step_id), solved.replace(right, wrong), {}).text
    assert says in told, told


def test_no_given_line_is_shown_for_a_wrong_number():
    """What a wrong number is stored by is given and right. The line with the mistake is the
    learner's."""
    solved = step_cells.make_solved("00-deal")
    cell = solved.replace("lanes * programs + program", "program * BLOCK + lanes")
    told = stepping.check_cell(steps.find("00-deal"), cell, {}).text
    assert "5 |     offsets = program * BLOCK + lanes" in told and "error shows" not in told
    # two lines of the learner's, and no known mistake: no line is shown
    for right, wrong in (("row * stride_x + cols, m", "row * stride_x + N - 1 - cols, m"),
                         ("x - mean, m", "x - mean + cols, m")):  # fmt: skip
        solved = step_cells.make_solved("01-rows") if right.startswith("row") else cell
        assert right in solved
        cell = solved.replace(right, wrong)
    told = stepping.check_cell(steps.find("01-rows"), cell, {}).text
    assert "Wrong values" in told and " | " not in told, told


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ("torch.arange(24.0).reshape(3, 8)[:, ::2]", "already the load is wrong"),
        ("torch.arange(12.0).reshape(4, 3).T", "already the load is wrong"),
        ("torch.arange(18.0).reshape(3, 6)[:, :4]", "It reads `x` in the right places"),
        ("torch.randn(3, 4)", "`x` has the shape (3, 4) and the strides (4, 1)."),
    ],
)
def test_a_layout_is_explained_as_what_it_is(x, says):
    cell = f"import torch\n\nx = {x}\nstep('07-layout')"
    wanted = steps.find("07-layout")
    assert says in stepping.check_cell(wanted, cell, run_value(wanted, cell)).text


def test_a_row_that_only_a_tree_adds_up_right_is_told_so():
    accepts = steps.find("07-half").accepts
    assert accepts is not None
    assert "a tree adds it up" in accepts([60000, 60000, -60000, -60000, 0, 0, 0, 0])
    assert "tree" not in accepts([1, -1, 1, -1, 1, -1, 1, -1])
    assert not accepts([60000, 60000, 0, 0, 60000, 0, 0, 0])


def change_answer(step_id: str, answer: Answer) -> str:
    """Return the solved cell with a right answer in the place of the course's."""
    cell = step_cells.make_solved(step_id)
    for old, new in answer if isinstance(answer[0], tuple) else (answer,):
        assert old in cell, f"{old!r} is no text of the solution"
        cell = cell.replace(old, new)
    return cell


def run_value(wanted: Step, cell: str) -> dict:
    """What the cell of a step of kind "value" defines."""
    names: dict = {}
    if wanted.kind == "value":
        body = [
            node
            for node in ast.parse(cell).body
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        ]
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return names
