"""A pass is earned: by the learner's own work, shared as asked, from the inputs alone, with
everything that came in left as it was.

What is handed in here goes past the list of allowed words: the process that runs it has to notice
by itself.
"""

from __future__ import annotations

import ast
import re
import textwrap

import numpy as np
import pytest

import course_lib
from course_lib import catalog
from course_lib.catalog import texts
from course_lib.grading import grade
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Plan
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.plans import make_plans, make_second_plans
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.grading.verdict import Verdict

interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a GPU compiles these kernels anew for each case"
)


def edited(exercise_id: str, *edits: tuple[str, str]) -> str:
    text = texts.read_solution(catalog.get(exercise_id))
    for find, replacement in edits:
        assert find in text, find
        text = text.replace(find, replacement)
    return text


@pytest.fixture
def verdict_on(tmp_path, monkeypatch):
    def verdict_on(exercise_id: str, text: str) -> Verdict:
        exercise, file = catalog.get(exercise_id), tmp_path / "mine.py"
        file.write_text(text)
        if exercise.kind != "kernel":  # past the list of what a function may use
            monkeypatch.setattr(
                reader, "read", lambda *anything: Kernels(text, exercise.entry_points)
            )
        return check(exercise, file)

    return verdict_on


# ---- inputs stay as they are, all the time -------------------------------------------------------

IN_PLACE = {
    "through a view": "x[0].mul_(1)",
    "through .data": "x.data.mul_(2); x.data.div_(2)",
    "detached": "x.detach().mul_(1)",
    "an element": "x[...] = x.clone()",
    "an argument named out": "torch.mul(x, 1, out=x)",
    "a dimension more": "x.unsqueeze_(0); x.squeeze_(0)",
    "other memory": "x.data = x.data.clone()",
    "w": "w.mul_(2); w.div_(2)",
}


@pytest.mark.parametrize("line", IN_PLACE.values(), ids=IN_PLACE.keys())
def test_a_tensor_changed_and_restored_is_changed(line, verdict_on):
    verdict = verdict_on(
        "01a", edited("01a", ("    wide = x.float()\n", f"    {line}\n    wide = x.float()\n"))
    )
    assert (verdict.status, verdict.cause) == ("fail", "input_changed"), verdict.message
    name = "w" if line.startswith("w") else "x"
    assert verdict.first.words.startswith(f"{name} is an input and is changed in place"), (
        verdict.message
    )
    if ".data = " not in line:  # that is seen afterwards
        assert verdict.place.source.strip() == line


def test_a_changed_shape_is_said_with_both(verdict_on):
    text = edited(
        "01a",
        (
            "    wide = x.float()\n",
            "    wide = x.clone().float()\n    x.data = x.data.reshape(-1)\n",
        ),
    )
    verdict = verdict_on("01a", text)
    assert verdict.cause == "input_changed"
    assert "x is an input; its shape was (5, 1) and is (5,) now" in verdict.message


ON_ITSELF = {
    "an element": "x[0] = x[0]",
    "in place": "x += 0",
    "an argument named out": "np.add(x, 0, out=x)",
    "made writeable": "x.flags.writeable = True",
}


@pytest.mark.parametrize("line", ON_ITSELF.values(), ids=ON_ITSELF.keys())
def test_numpys_inputs_are_not_writeable_and_the_verdict_says_whose_they_are(line, verdict_on):
    text = edited(
        "03a",
        (
            "two_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:\n",
            f"two_pass(x):\n    {line}\n",
        ),
    )
    verdict = verdict_on("03a", text)
    assert (verdict.status, verdict.cause) == ("fail", "input_changed"), verdict.message
    assert "x belongs to the caller" in verdict.message and "read-only" not in verdict.message
    assert verdict.place.source.strip() == line


def test_an_array_that_comes_back_in_another_shape_is_changed(verdict_on):
    verdict = verdict_on("03a",
        edited("03a", ("    return mean, var\n\n\ndef two",
            "    given.shape = (given.size,) if given.size == 24 else given.shape\n    return "
            "mean, var\n\n\ndef two"),
                                       ("def one_pass(x: np.ndarray) -> tuple[np.ndarray, "
                                        "np.ndarray]:\n", "def one_pass(x):\n    given = x\n")))  # fmt: skip  # noqa: E501
    assert verdict.cause == "input_changed"
    assert "x is an input; its shape was (3, 8) and is (24,) now" in verdict.message


@interpreted
@pytest.mark.parametrize(
    "line",
    [
        "tl.store(lock_ptr + tl.arange(0, 2), 0)",
        "tl.atomic_add(lock_ptr, 0)",
        "tl.store(part_ptr + cols, x)",
    ],
)
def test_scratch_may_be_written(line):
    x = np.arange(8, dtype=np.float32)
    tensors = (
        Tensor("x", "fp32", (8,), (1,), x),
        Tensor("y", "fp32", (8,), (1,)),
        Tensor("part", "fp32", (8,), (1,), scratch=True),
        Tensor("lock", "int32", (2,), (1,), np.zeros(2, np.int32), scratch=True),
    )
    plan = Plan(
        Case("c", 1, 8, 8, "memory to work in"), "copy", (1,), tensors,
        tuple(t.name for t in tensors), {},
        {"y": Expected(x.astype(np.float64), np.full(8, 0.1))},
    )  # fmt: skip
    source = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef copy(x_ptr, y_ptr,"
        " part_ptr, lock_ptr):\n    cols = tl.arange(0, 8)\n    x = tl.load(x_ptr + cols)\n   "
        f" {line}\n    tl.store(y_ptr + cols, x)\n"
    )
    run = runner.run(Kernels(source, ("copy",)), [plan], "cpu")
    assert run.ended == "finished" and not run.errors


# ---- what is returned ----------------------------------------------------------------------------

RETURNED = {
    "a tuple of one": (
        "01a",
        "(y.to(x.dtype),)",
        "`layer_norm` returned a tuple of one; asked for: the tensor itself",
    ),
    "a list of one": (
        "01a",
        "[y.to(x.dtype)]",
        "`layer_norm` returned a list of one; asked for: the tensor itself",
    ),
    "a subclass": (
        "01a",
        "torch.nn.Parameter(y.to(x.dtype), False)",
        "y came back as a subclass of torch.Tensor, `Parameter`",
    ),
    "a generator": ("01a", "(part for part in y)", "y came back as `generator`"),
    "a dictionary": ("01a", "{'y': y}", "y came back as `dict`"),
    "one of two": ("03a", "mean", "returned one array; asked for: mean, var"),
    "a generator of two": (
        "03a",
        "(each for each in (mean, var))",
        "returned `generator`; asked for: mean, var",
    ),
    "both in one array": (
        "03a",
        "np.stack([mean, var])",
        "returned one array; asked for: mean, var",
    ),
    "a matrix": (
        "03a",
        "np.matrix(mean), var",
        "mean came back as a subclass of np.ndarray, `matrix`",
    ),
    "a number": ("03a", "mean, var[0]", "var came back as one number, `float32`"),
    "an array of no dimension": (
        "03a",
        "mean, np.array(var[0])",
        "var came back as shape (), fp32",
    ),
}


@pytest.mark.parametrize(("exercise_id", "value", "words"), RETURNED.values(), ids=RETURNED.keys())
def test_what_is_returned_is_exactly_what_was_asked_for(exercise_id, value, words, verdict_on):
    last = "return y.to(x.dtype)" if exercise_id == "01a" else "return mean, var"
    verdict = verdict_on(exercise_id, edited(exercise_id, (last, f"return {value}")))
    assert (verdict.status, verdict.cause) == ("fail", "wrong_return"), verdict.message
    assert words in verdict.message


def test_several_outputs_may_come_as_a_list(verdict_on):
    assert verdict_on("03a", edited("03a", ("return mean, var", "return [mean, var]"))).passed


OWN_TUPLE = """\


class Own(tuple):
    def __iter__(self):
        return iter((one, two))

    def __len__(self):
        return 2

    def __getitem__(self, at):
        return (one, two)[at]
"""


@pytest.mark.parametrize(
    ("held", "said", "words"),
    [
        ("(mean, var)", "(0 * mean, var)", ""),
        ("(mean, 2 * var)", "(mean, var)", "var is off"),
        ("(mean,)", "(mean, var)", "`two_pass` returned 1 value; asked for: mean, var"),
    ],
)
def test_of_a_kind_of_tuple_what_it_holds_counts_and_not_what_its_class_says(
    held, said, words, verdict_on
):
    text = edited("03a", ("import numpy as np\n", f"import numpy as np\n{OWN_TUPLE}"))
    first, end, second = text.partition("def two_pass")
    second = second.replace(
        "    return mean, var",
        f"    global one, two\n    one, two = {said}\n    return Own({held})",
    )
    verdict = verdict_on("03a", first + end + second)
    assert verdict.passed if not words else words in verdict.message, verdict.message


# ---- who does the work ---------------------------------------------------------------------------


def by_programs(exercise_id: str, head: str) -> str:
    """The solution with the body of its first kernel inside ``head``, two steps further in.
    ``head`` says whose work is done by ``across`` and ``down``, which stand for the two program
    ids."""
    text = texts.read_solution(catalog.get(exercise_id))
    for matrix in ("x", "total", "y"):  # a pointer that moves would move again for the next program
        if f"    {matrix}_ptr += row" in text:
            text = text.replace(f"{matrix}_ptr + cols", f"{matrix}_at + cols")
            text = text.replace(f"{matrix}_ptr += row", f"{matrix}_at = {matrix}_ptr + row")
    name = catalog.get(exercise_id).entry_points[0]
    (kernel,) = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    lines, first = text.split("\n"), kernel.body[0].lineno - 1
    if isinstance(kernel.body[0], ast.Expr):
        first = kernel.body[1].lineno - 1
    body = textwrap.indent("\n".join(lines[first : kernel.end_lineno]), " " * 8)
    body = body.replace("tl.program_id(0)", "across").replace("tl.program_id(1)", "down")
    return "\n".join([*lines[:first], head.rstrip("\n"), body, *lines[kernel.end_lineno :]])


KERNELS = [exercise.id for exercise in catalog.exercises().values() if exercise.kind == "kernel"]
ALONE = """\
    if tl.program_id(0) + tl.program_id(1) == 0:
        for index in range(0, tl.num_programs(0) * tl.num_programs(1)):
            across, down = tl.program_id(0) + index % tl.num_programs(0), tl.program_id(1) + index // tl.num_programs(0)
"""  # noqa: E501
PAIRS = """\
    for part in range(0, 2):
        index = 2 * (tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)) + part
        across, down = index % tl.num_programs(0), index // tl.num_programs(0)
        if index < tl.num_programs(0) * tl.num_programs(1):
"""


@interpreted
# where each program waits for all words of its row
@pytest.mark.parametrize("exercise_id", [one for one in KERNELS if one != "16b"])
def test_one_program_does_not_do_the_work_of_all(exercise_id, verdict_on):
    verdict = verdict_on(exercise_id, by_programs(exercise_id, ALONE))
    assert (verdict.status, verdict.cause) == ("fail", "work_not_shared"), verdict.message
    assert "program 0 of " in verdict.message or "program (0, 0, 0) of " in verdict.message
    assert re.search(
        r"does all the loads of (x|y|w|means); the exercise gives every program a part of its own",
        verdict.message,
    )


@interpreted
@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("exercise_id", ["00a", "06a", "07a", "08a", "12a", "13a", "13b"])
def test_a_program_may_take_two_parts_and_leave_others_without(exercise_id, verdict_on):
    verdict = verdict_on(exercise_id, by_programs(exercise_id, PAIRS))
    assert verdict.passed, verdict.message


def test_one_pass_does_not_call_two_pass_and_two_pass_may_have_its_mean_from_one_pass(verdict_on):
    verdict = verdict_on(
        "03a",
        edited("03a", ("    return mean, var\n\n\ndef two", "    return two_pass(x)\n\n\ndef two")),
    )
    assert (verdict.status, verdict.cause) == ("fail", "not_its_own"), verdict.message
    assert (
        verdict.place.source.strip() == "return two_pass(x)"
        and "`one_pass` calls `two_pass`" in verdict.message
    )
    mean = (
        "    mean = np.mean(x, axis=1)\n    deviation",
        "    mean, _ = one_pass(x)\n    deviation",
    )
    assert verdict_on("03a", edited("03a", mean)).passed


@pytest.mark.parametrize(
    "kept",
    [
        "rows",
        "(1, [w, rows])",
        "{'a': rows}",
        "[(lambda value: lambda: value)(value) for value in (rows, 1, 2)]",
    ],
)
def test_no_tensor_is_kept_on_ctx_under_any_name_or_in_any_container(kept, verdict_on):
    save = "    ctx.save_for_backward(rows, w, b, mean, rstd)\n"
    verdict = verdict_on("14a", edited("14a", (save, f"{save}    ctx.eps = {kept}\n")))
    assert (verdict.status, verdict.cause) == ("fail", "tensor_on_ctx"), verdict.message
    assert "`ctx.eps` holds a tensor" in verdict.message


def test_numbers_and_shapes_may_be_kept_on_ctx(verdict_on):
    save = "    ctx.save_for_backward(rows, w, b, mean, rstd)\n"
    assert verdict_on(
        "14a", edited("14a", (save, f"{save}    ctx.eps = (eps, x.shape, x.dtype)\n"))
    ).passed


# ---- the second run ------------------------------------------------------------------------------

COPY = "    tl.store(y_ptr + offsets, x, mask=mask)\n"


@interpreted
def test_what_an_output_held_may_be_read_and_thrown_away(verdict_on):
    held = (
        "    held = tl.load(y_ptr + offsets, mask=mask)\n    tl.store(y_ptr + offsets, tl.where(n <"
        " 0, held, x), mask=mask)\n"
    )
    assert verdict_on("00a", edited("00a", (COPY, held))).passed


@interpreted
def test_a_second_run_that_differs_shows_its_case_behind_the_others_and_says_it_again(verdict_on):
    firsts = [float(plan.tensor("x").values[0]) for plan in make_plans(catalog.get("00a"))]
    known = "".join(
        f"    known = {'known | ' * bool(n)}(tl.abs(first - {value:.5f}) < 1e-3)\n"
        for n, value in enumerate(firsts)
    )
    known = known.replace("first - -", "first + ")
    text = edited(
        "00a",
        (
            COPY,
            (
                f"    first = tl.load(x_ptr).to(tl.float32)\n{known}    tl.store(y_ptr + offsets,"
                " tl.where(known, x, 0.0), mask=mask)\n"
            ),
        ),
    )
    verdict, again = verdict_on("00a", text), verdict_on("00a", text)
    assert (verdict.status, verdict.cause) == ("fail", "right_only_once"), verdict.message
    assert [case.status for case in verdict.cases] == ["pass"] * len(firsts) + [
        "fail"
    ] and "a second run, other numbers" in verdict.message
    assert verdict.timed(0).as_json() == again.timed(0).as_json()


def read_inputs(plan: Plan) -> list[object]:
    """The numbers in the tensors; without any, the sizes of 15a and the seeds of 17a."""
    numbers = [
        np.ascontiguousarray(tensor.values).tobytes()
        for tensor in plan.tensors
        if tensor.values is not None
    ]
    return numbers or list(plan.arguments)


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_the_second_run_has_the_shapes_of_a_case_and_nothing_else_of_it(exercise):
    plans = make_plans(exercise)
    chosen = set()
    for key in (b"a", b"b", b"c", b"d"):
        again = make_second_plans(exercise, plans, key, b"numbers" + key)
        assert [plan.entry_point for plan in again] == list(exercise.entry_points)
        for plan in again:
            first = next(
                p
                for p in plans
                if f"{p.case.name}, again" == plan.case.name and p.entry_point == plan.entry_point
            )
            chosen.add(first.case.name)
            assert (plan.grid, plan.constexprs) == (first.grid, first.constexprs)
            for one, other in zip(first.tensors, plan.tensors, strict=True):
                assert (one.name, one.dtype) == (other.name, other.dtype)
                # a function of sizes alone gets other sizes
                if any(tensor.values is not None for tensor in first.tensors):
                    assert (one.shape, one.strides) == (other.shape, other.strides)
                assert one.guard < other.guard
                if one.is_output:
                    bits = other.initial_bytes()
                    assert bits != one.initial_bytes()
                    assert one.in_place or other.find_unwritten(bits).all()
                    assert np.isfinite(other.read(bits).astype(np.float64)).all()
            assert read_inputs(plan) != read_inputs(first)
        same = make_second_plans(exercise, plans, key, b"numbers" + key)
        for one, other in zip(again, same, strict=True):
            assert [t.initial_bytes() for t in one.tensors] == [
                t.initial_bytes() for t in other.tensors
            ]
    assert len(chosen) > 1


@pytest.mark.parametrize("secret", [None, "a secret of the instructor's"])
def test_which_case_runs_again_is_not_the_authors_to_say(secret, tmp_path, monkeypatch):
    exercise, seen = catalog.get("02a"), []

    def watched(*arguments):
        plans = make_second_plans(*arguments)
        seen.append(([plan.case for plan in plans], [read_inputs(plan) for plan in plans]))
        return plans

    monkeypatch.setattr(grade, "make_second_plans", watched)
    file = tmp_path / "file.py"
    for name in ("wide", "broad", "x32", "rows", "values", "numbers"):
        file.write_text(texts.read_solution(exercise).replace("wide", name))
        assert check(exercise, file, secret=secret).passed
    cases, inputs = zip(*seen, strict=True)
    assert all(case == cases[0] for case in cases)
    # without a secret all else is public: numbers that stayed the same could stand in a table
    assert len({repr(numbers) for numbers in inputs}) == (6 if secret is None else 1)


# ---- programs that need nothing of one another ---------------------------------------------------

LAST_OF_06A = "    tl.store(y_ptr + row, tl.sum(total, axis=0))\n"
LAST_OF_07A = "    tl.store(rstd_ptr + row, rstd)\n"
TOUCHES = {
    "two programs store": (
        "06a",
        LAST_OF_06A,
        "    tl.store(y_ptr + row + 1, 0.0, mask=row + 1 < tl.num_programs(0))\n" + LAST_OF_06A,
        "programs_overlap",
    ),
    "another program's output is loaded": (
        "06a",
        LAST_OF_06A,
        "    near = (row > 0) & (tl.num_programs(0) < 9)\n"
        "    before = tl.load(y_ptr + row - 1, mask=near, other=0)\n"
        "    total = tl.sum(total, axis=0)\n"
        "    tl.store(y_ptr + row, tl.where(before == -1, 0, total))\n",
        "race",
    ),
    "one thread stores what all threads load": (
        "07a",
        LAST_OF_07A,
        LAST_OF_07A + "    mean = tl.load(mean_ptr + row)\n",
        "number_of_each_thread",
    ),
}


@interpreted
@pytest.mark.parametrize(
    ("exercise_id", "line", "lines", "cause"), TOUCHES.values(), ids=TOUCHES.keys()
)
def test_only_a_gpu_would_show_that_two_touch_one_element(
    exercise_id, line, lines, cause, verdict_on
):
    verdict = verdict_on(exercise_id, edited(exercise_id, (line, lines)))
    assert (verdict.status, verdict.cause) == ("fail", cause), verdict.message


@interpreted
def test_what_a_barrier_separates_may_be_loaded_again(verdict_on):
    lines = "    tl.debug_barrier()\n    mean = tl.load(mean_ptr + row)\n"
    assert verdict_on("07a", edited("07a", (LAST_OF_07A, LAST_OF_07A + lines))).passed


ANNOTATED = {
    "N in 8 bits": ("    N,\n", "    N: tl.int8,\n"),
    "a stride in 8 bits": ("    stride_x,  ", "    stride_x: 'i8',  "),
    "x of another dtype": ("    x_ptr, y_ptr,\n", "    x_ptr: '*fp16', y_ptr,\n"),
}


@interpreted
@pytest.mark.parametrize("edit", ANNOTATED.values(), ids=ANNOTATED.keys())
def test_an_argument_has_the_type_that_its_annotation_gives_it(edit, verdict_on):
    assert verdict_on("06a", edited("06a", edit)).status == "fail"


@interpreted
def test_annotations_that_are_true_change_nothing(verdict_on):
    text = edited(
        "06a", ("    N,\n", "    N: tl.int32,\n"), ("    stride_x,  ", "    stride_x: int,  ")
    )
    assert verdict_on("06a", text).passed
