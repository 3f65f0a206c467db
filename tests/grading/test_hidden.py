"""Hidden cases: what they keep of the visible ones, what they change, that nobody learns the
secret, and whom they stop."""

from __future__ import annotations

import json
import math
import os
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import mutants, texts
from course_lib.exercises import find_parts
from course_lib.grading import grade
from course_lib.grading.cases.case import Case, SharedCase
from course_lib.grading.cases.hidden import Secret, draw_hidden_case, read_secret
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.plans import make_plans
from course_lib.grading.report import make_report
from course_lib.grading.verdict import Verdict, from_dict
from course_lib.sandbox import servers

EXERCISES = list(catalog.exercises().values())
SECRETS = ("correct horse battery", "staple, and a second one")


def battery(exercise: catalog.Exercise) -> list[Case]:
    return [case for part in find_parts(exercise).values() for case in part.battery]


def drawn(case: Case, number: int) -> Case:
    return draw_hidden_case(case, np.random.Generator(np.random.PCG64([number, len(case.name)])))


# ---- what is kept


def facts(c: Case) -> dict[str, object]:
    """What a case is there for, told without the module that draws it."""
    blocks = -(-c.N // c.block) if c.block else 1
    tiles = -(-c.M // c.rows)
    told: dict[str, object] = {
        "what it is": (
            c.name,
            c.dtype,
            c.w_dtype,
            c.fill,
            c.layout,
            c.vector,
            c.mean,
            c.std,
            c.eps,
        ),
        "a vector, a matrix, or more": len(c.leading),
        "padded lanes": c.padded_lanes > 0,
        "one block": c.one_block,
        "two blocks": blocks == 2,
        "a block of one column": blocks > 1 and c.N % c.block == 1,
        "nearly all lanes empty": c.block >= 8 * c.N,
        "one column": c.N == 1,
        "two columns": c.N == 2,
        "one row": c.M == 1,
        "no row": c.M == 0,
        "square": c.M == c.N,
        "several rows a program": c.rows > 1,
        "a short tile": c.M % c.rows != 0,
        "one tile": c.rows > 1 and tiles == 1,
        "fewer rows than a tile": c.rows > c.M,
    }
    if isinstance(c, SharedCase):
        told |= {
            "orders": c.orders,
            "one buffer": c.partials == 1,
            "more rows than buffers": c.partials < c.M,
            "as many": c.partials == c.M,
            "chunks": c.chunk > 0,
            "chunks of one row": c.chunk == 1,
            "a short step": c.chunk % c.rows != 0,
            "a short last chunk": bool(c.chunk) and c.M % c.chunk != 0,
            "rows dealt out evenly": not c.chunk and c.M % c.partials == 0,
            "more tiles than programs": not c.chunk and tiles > c.partials,
            "as many tiles as programs": not c.chunk and tiles == c.partials,
        }
    return told


def counts(c: Case) -> tuple[int, ...]:
    """Numbers at which a wrong kernel may stop, or which it may keep in fp16: columns, steps,
    columns of the last step, programs, partial sums."""
    steps = (-(-c.N // c.block), c.N % c.block) if c.block else (1, 0)
    return (
        c.N,
        *steps,
        -(-c.M // c.rows),
        c.partials if isinstance(c, SharedCase) and not c.chunk else 1,
    )


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), number=st.integers(0, 10**9))
def test_a_hidden_case_is_there_for_the_same_thing(exercise, data, number):
    case = data.draw(st.sampled_from(battery(exercise)))
    new = drawn(case, number)
    assert type(new) is type(case) and facts(new) == facts(case)
    if case.fill == "worked":
        assert new == case
        return
    # one group, or two, of a function: nothing but the numbers can be others
    only_one = case.M == 1 and case.N <= 2 and not case.block
    assert only_one or (new.M, new.N, new.block, new.rows) != (
        case.M,
        case.N,
        case.block,
        case.rows,
    )
    assert new.N != case.N or case.N <= 2
    assert (
        new.block == 0 if not case.block else (new.block & (new.block - 1) == 0 and new.block >= 4)
    )
    assert not new.leading or (
        prod(new.leading) == new.M and len(set(new.leading)) == len(set(case.leading))
    )
    if case.is_far:
        assert new.M == case.M
    if isinstance(new, SharedCase) and new.chunk:
        assert new.partials == -(-new.M // new.chunk)
    assert new.M * new.N <= 2 * case.M * case.N + 64, "it costs more"
    for now, before in zip(counts(new), counts(case), strict=True):
        assert all(
            now > limit
            for limit in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
            if before > limit
        ), (now, before)
        with np.errstate(over="ignore"):
            assert float(np.float16(before)) == before or float(np.float16(now)) != now, (
                now,
                before,
            )


@pytest.mark.parametrize("number", range(40))
def test_a_single_column_is_drawn_in_another_shape(number):
    (case,) = [case for case in battery(catalog.get("12a")) if case.name == "one column"]
    new = drawn(case, number)
    assert (new.M, new.block, new.rows) != (case.M, case.block, case.rows), (
        "only the number of buffers is another"
    )


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_what_is_said_of_a_hidden_case_is_true_of_it(exercise):
    for case in battery(exercise):
        if case.fill == "worked":
            continue
        new = drawn(case, 1)
        told = new.describe()
        assert f'hidden, of the kind "{case.name}"' in told
        assert (f"{new.padded_lanes} padded lane" in told) == (new.padded_lanes > 0)
        if "GROUP = " in case.describe():
            assert f"GROUP = {new.partials}" in told


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_a_hidden_battery_can_be_planned_and_costs_about_the_same(exercise):
    visible = make_plans(exercise)
    for number in range(2):
        new = make_plans(exercise, secret=Secret(f"another {number}"))
        assert [(p.case.name, p.entry_point) for p in new] == [
            (p.case.name, p.entry_point) for p in visible
        ]
        assert all(
            p.constexprs.keys() == q.constexprs.keys() and len(p.grid) == len(q.grid)
            for p, q in zip(new, visible, strict=True)
        )
        assert sum(t.nbytes for p in new for t in p.tensors) < 2 * sum(
            t.nbytes for p in visible for t in p.tensors
        )
        assert sum(prod(p.grid) for p in new) < 1.5 * sum(prod(p.grid) for p in visible) + 3


# ---- what is changed, and for whom


def shapes(secret: str, exercise_id: str) -> list[tuple[int, int, int]]:
    return [
        (p.case.M, p.case.N, p.case.block)
        for p in make_plans(catalog.get(exercise_id), secret=Secret(secret))
    ]


def contents(secret: str, exercise_id: str, seed: int = 0) -> list[bytes]:
    return [
        t.initial_bytes()
        for p in make_plans(catalog.get(exercise_id), seed, Secret(secret))
        for t in p.tensors
    ]


def test_a_secret_gives_one_battery_and_another_secret_another():
    assert contents("a", "07a") == contents("a", "07a")
    different = [
        one != other for one, other in zip(shapes("a", "07a"), shapes("b", "07a"), strict=True)
    ]
    assert sum(different) > len(different) / 2
    assert shapes("a", "07a") == [
        (p.case.M, p.case.N, p.case.block) for p in make_plans(catalog.get("07a"), 5, Secret("a"))
    ]
    assert contents("a", "07a") != contents("a", "07a", seed=5)
    # nor does one exercise tell another's
    assert shapes("a", "01a")[1:8] != shapes("a", "02a")[1:8]


def test_the_battery_is_the_same_on_every_machine():
    assert Secret("correct horse battery").fingerprint == "e8c5b2202092"
    assert shapes("correct horse battery", "07a")[:6] == [
        (3, 8, 4),
        (4, 13, 4),
        (4, 6, 32),
        (4, 1, 8),
        (1, 257, 256),
        (3, 1014, 128),
    ]


def test_values_are_new_where_the_shape_has_to_stay():
    (visible,) = (p for p in make_plans(catalog.get("07a")) if p.case.fill == "worked")
    (new,) = (
        p for p in make_plans(catalog.get("07a"), secret=Secret("a")) if p.case.fill == "worked"
    )
    assert new.case == visible.case
    assert new.tensor("x").initial_bytes() == visible.tensor("x").initial_bytes()
    assert new.tensor("w").initial_bytes() != visible.tensor("w").initial_bytes()


# ---- the grader with a secret


@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_a_solution_passes_the_hidden_cases(exercise):
    check_solution(exercise, SECRETS[0])


@pytest.mark.sweep
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_a_solution_passes_the_hidden_cases_of_another_secret(exercise):
    check_solution(exercise, SECRETS[1])


def check_solution(exercise: catalog.Exercise, secret: str) -> None:
    verdict = check(exercise, paths.SOLUTIONS / f"{exercise.file}.py", secret=secret)
    assert verdict.status == "pass", verdict.message + verdict.printed
    assert {case.status for case in verdict.cases} == {"pass"}
    assert verdict.hidden == Secret(secret).fingerprint and len(verdict.cases) == len(
        make_plans(exercise)
    )


def sample() -> list:
    """One mutant of each exercise: all of them are a matter of minutes."""
    chosen = []
    for number, exercise in enumerate(EXERCISES):
        entries = [entry for entry in mutants.read_mutants(exercise) if not entry.get("slow")]
        entry = entries[7 * number % len(entries)]
        chosen.append(pytest.param(exercise, entry, id=f"{exercise.id}-{entry['id']}"))
    return chosen


@pytest.mark.parametrize(("exercise", "entry"), sample())
def test_a_mutant_fails_the_hidden_cases_with_its_cause(exercise, entry, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(mutants.make_text(exercise, entry), encoding="utf-8")
    verdict = check(exercise, file, secret=SECRETS[0])
    assert verdict.status in ("fail", "error"), "the mutant survived"
    expected = entry.get("cause_hidden", entry.get(f"cause_{course_lib.MODE}", entry["cause"]))
    assert verdict.cause == expected, verdict.message


@pytest.mark.parametrize("number", range(6))
def test_whatever_a_file_subtracts_from_a_row_lies_far_out_in_a_hidden_case(number, tmp_path):
    """Hidden rows are of even and of odd length: a file that subtracts the middle element must not
    pass for some learners."""
    exercise = catalog.get("03a")
    (entry,) = (
        one
        for one in mutants.read_mutants(exercise)
        if one["id"] == "two_pass_shifted_by_the_middle"
    )
    file = tmp_path / "mine.py"
    for middle in ("x.shape[1] // 2", "(x.shape[1] - 1) // 2"):
        text = mutants.make_text(exercise, entry)
        assert "x.shape[1] // 2" in text
        file.write_text(text.replace("x.shape[1] // 2", middle), encoding="utf-8")
        assert check(exercise, file, secret=f"learner number {number}").status == "fail"


def answers_in_a_table() -> str:
    """A file for exercise 03a that computes nothing: for each case of the visible battery it has
    the right numbers."""
    exercise = catalog.get("03a")
    lines = ["import math\n\nimport numpy as np\n"]
    for entry_point in exercise.entry_points:
        lines.append(f"\ndef {entry_point}(x):")
        lines.append("    mean, var = [0.0] * len(x), [0.0] * len(x)")
        for p in make_plans(exercise):
            if p.entry_point == entry_point:
                answers = (
                    [
                        repr(float(v)) if math.isfinite(v) else f"math.{float(v)}"
                        for v in p.expected[name].values
                    ]
                    for name in ("mean", "var")
                )
                numbers = ", ".join(f"[{', '.join(one)}]" for one in answers)
                # three cases have one shape, and differ in where it lies
                largest = abs(p.inputs["x"][0]).argmax()
                known = f"x.shape == {p.tensor('x').shape} and abs(x[0]).argmax() == {largest}"
                lines.append(f"    if {known}:\n        mean, var = {numbers}")
        lines.append(
            "    return np.array(mean, dtype=np.float32), np.array(var, dtype=np.float32)\n"
        )
    return "\n".join(lines)


def right_for_known_columns() -> str:
    """A kernel for exercise 07a that is right for the N of the visible battery, and leaves b out
    for any other."""
    exercise = catalog.get("07a")
    known = sorted({p.case.N for p in make_plans(exercise)})
    text = texts.read_solution(exercise)
    loads = [line for line in text.splitlines() if line.lstrip().startswith("b = tl.load(")]
    assert len(loads) == 1
    indent = loads[0][: len(loads[0]) - len(loads[0].lstrip())]
    condition = " | ".join(f"(N == {n})" for n in known)
    return text.replace(loads[0], f"{loads[0]}\n{indent}b = tl.where({condition}, b, 0.0)")


@pytest.mark.parametrize(
    ("exercise_id", "cheat", "cause"),
    # a table of answers is wrong for other numbers of the same shapes, and so is found out by the
    # second run
    [("03a", answers_in_a_table, "right_only_once"), ("07a", right_for_known_columns, "none")],
    ids=["03a", "07a"],
)
def test_a_file_made_for_the_visible_cases_is_right_in_them_and_fails_the_hidden_ones(
    exercise_id, cheat, cause, tmp_path
):
    exercise, file = catalog.get(exercise_id), tmp_path / "mine.py"
    file.write_text(cheat(), encoding="utf-8")
    plain, secret = check(exercise, file), check(exercise, file, secret=SECRETS[0])
    assert plain.cause == cause and plain.passed == (cause == "none"), plain.message
    assert (secret.status, secret.exit_code) == ("fail", 1)
    wrong = [case for case in secret.cases if case.status == "fail"]
    assert len(wrong) > len(secret.cases) / 2
    assert 'hidden, of the kind "' in secret.message and "N = " in secret.message, (
        "the learner is told the shape"
    )


# ---- the secret stays one


def test_neither_secret_nor_fingerprint_reaches_the_child(monkeypatch):
    exercise, secret = catalog.get("00a"), "nobody may read this, never"
    seen: list[bytes] = []
    ask = servers.ask

    def watched(kind, job, seconds, look):
        seen.append(json.dumps(job).encode())
        seen.extend(file.read_bytes() for file in Path(job["folder"]).iterdir())
        return ask(kind, job, seconds, look)

    monkeypatch.setattr(servers, "ask", watched)
    verdict = check(exercise, paths.SOLUTIONS / f"{exercise.file}.py", secret=secret)
    assert verdict.passed and len(seen) > len(verdict.cases)
    for server in servers._idle:
        seen += [
            Path(f"/proc/{server.process.pid}/{what}").read_bytes()
            for what in ("environ", "cmdline")
        ]
    everything = b"\0".join(seen)
    for word in (
        secret,
        verdict.hidden,
        "hidden, of the kind",
        *(case.name for case in verdict.cases),
    ):
        assert word.encode() not in everything, word


def test_a_verdict_shows_the_fingerprint_and_not_the_secret(monkeypatch):
    secret = "nobody may read this, never"
    exercise = catalog.get("00a")
    monkeypatch.setattr(
        grade, "grade", lambda *_: (Verdict("00a", "pass", "none", "All cases are right."), [])
    )
    verdict = check(exercise, secret=secret)
    fingerprint = Secret(secret).fingerprint
    assert json.loads(verdict.as_json())["hidden"] == fingerprint and len(fingerprint) == 12
    assert from_dict(verdict.as_dict()) == verdict
    shown = make_report(verdict, exercise)
    assert fingerprint in shown.footer
    for text in (verdict.as_json(), str(shown), repr(verdict), repr(Secret(secret))):
        assert secret not in text
    assert Secret(secret + ".").fingerprint != fingerprint
    assert check(exercise).hidden == ""


def test_a_verdict_from_before_there_were_hidden_cases_is_read():
    verdict = Verdict("00a", "pass", "none", "All cases are right.")
    old = {name: value for name, value in verdict.as_dict().items() if name != "hidden"}
    assert from_dict(old) == verdict


def test_an_empty_secret_is_refused_and_never_taken_for_none():
    for empty in ("", b""):
        with pytest.raises(ValueError, match="empty"):
            check(catalog.get("00a"), secret=empty)


def test_a_hidden_fault_of_the_grader_is_marked_too(monkeypatch):
    monkeypatch.setattr(runner, "run", lambda *arguments: 1 / 0)
    exercise = catalog.get("00a")
    verdict = check(exercise, paths.SOLUTIONS / f"{exercise.file}.py", secret="a")
    assert (verdict.status, verdict.hidden) == ("grader fault", Secret("a").fingerprint)


# ---- the file it is kept in


def test_white_space_around_a_secret_is_no_part_of_it(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"\n 0123456789 abcdef\xff \r\n")
    assert read_secret(file) == b"0123456789 abcdef\xff"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"midterm\n", "has 7 bytes; one under 16 can be guessed"),
        (b"x" * 5000, "more than 4096 bytes"),
        (None, "No such file"),
    ],
)
def test_a_file_without_a_secret_is_said(tmp_path, content, words):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CourseError, match=words) as refused:
        read_secret(file)
    assert "secrets.token_hex(16)" in str(refused.value) and "\n" not in str(refused.value)


def test_a_folder_or_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(CourseError, match="Is a directory"):
        read_secret(tmp_path)
    if os.geteuid():
        closed = tmp_path / "secret"
        closed.write_text("0123456789abcdef")
        closed.chmod(0)
        with pytest.raises(CourseError, match="Permission denied"):
            read_secret(closed)
