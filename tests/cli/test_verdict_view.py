"""How a verdict looks in a terminal: each piece apart, nothing lost at any width, nothing of a
learner's that a terminal obeys."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import mutants, texts
from course_lib.cli.verdict_view import verdict_view
from course_lib.grading.report import make_report, quote_line
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    CaseResult,
    Finding,
    Place,
    Verdict,
    from_dict,
)

EX = catalog.get("07a")
FIRST = Finding(
    "M = 1, N = 3, BLOCK = 4, fp32: mean 3",
    "y is off by up to 41 x the allowed error in 3 of 3 elements; y[0, 0] is -0.9",
    "y[0, 0]", -0.9, -1.2, 41.0, 3, 3, 69_512.0,
)  # fmt: skip
PLACE = Place(
    "exercises/ex07a_layer_norm_forward.py",
    31,
    "    squares += deviation * deviation",
    15,
    36,
    "y is stored here",
)
CASES = (CaseResult("one", "pass", 0.1, ""), CaseResult("two", "fail", 41.0, ""))
WRONG = Verdict(
    "07a", FAIL, "padding_in_variance", "All of it in one paragraph.", CASES, "cpu",
    "namespaces and Landlock", 1.5,
    headline="Padding in the variance.", first=FIRST, place=PLACE,
    question="What does `x - mean` hold where `mask` is false?",
    common="7 of 23 cases are wrong, all with padded lanes.",
)  # fmt: skip


def drawn(verdict: Verdict, width: int = 80, exercise=EX, **how) -> str:
    out = io.StringIO()
    Console(file=out, width=width, **how).print(verdict_view(verdict, exercise))
    return out.getvalue()


def test_a_fail_has_each_piece_apart_and_in_order():
    assert (
        drawn(WRONG) == "✗ 07a LayerNorm forward, block by block: fail, 1 of 2 cases right\n"
        "\n"
        "Padding in the variance.\n"
        "\n"
        "Smallest failing case: M = 1, N = 3, BLOCK = 4, fp32: mean 3\n"
        "  expected y[0, 0] -1.2\n"
        "  got              -0.9\n"
        "  difference        0.3, 41.0 times the allowed error\n"
        "  3 of 3 elements of y are wrong, by up to 69,500 times the allowed error.\n"
        "\n"
        "The error shows here:\n"
        "exercises/ex07a_layer_norm_forward.py:31\n"
        "31 |     squares += deviation * deviation\n"
        "   |                ^^^^^^^^^^^^^^^^^^^^^ y is stored here\n"
        "\n"
        "What does `x - mean` hold where `mask` is false?\n"
        "\n"
        "7 of 23 cases are wrong, all with padded lanes.\n"
        "\n"
        "Stuck? `course hint 07a`\n"
        "\n"
        "in the interpreter (CPU), 1.5 s\n"
    )


def words(text: str) -> str:
    return "".join(text.split())


def test_the_isolation_is_told_to_who_grades_others_and_every_program():
    assert "isolation" not in drawn(replace(WRONG, tier="limits only"))
    assert "isolation: limits only, hidden cases 0123" in drawn(
        replace(WRONG, tier="limits only", hidden="0123")
    )
    assert json.loads(WRONG.as_json())["isolation"] == "namespaces and Landlock"


@pytest.mark.parametrize("width", [80, 60, 40, 24])
def test_nothing_is_lost_at_any_width(width):
    told, text = make_report(WRONG, EX), drawn(WRONG, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    for piece in (
        told.headline,
        told.cause,
        told.case,
        told.words,
        told.question,
        told.common,
        told.footer,
        "exercises/ex07a_layer_norm_forward.py:31",
    ):
        assert words(piece) in words(text), piece
    assert "^^^" in text and all(words(name + value) in words(text) for name, value in told.numbers)


@pytest.mark.parametrize(("first", "rows"), [
    (replace(FIRST, got=float("nan"), ratio=None, worst=None, wrong=1, size=4),
        ["expected y[0, 0] -1.2", "got               nan", "1 of 4 elements of y is wrong."]),
    (replace(FIRST, element="raised", wrong=1, size=1),
        ["expected raised -1.2", "difference       0.3, 41.0 times the allowed error"]),
    (replace(FIRST, ratio=1.5e9, worst=None),
        ["difference        0.3, more than 1e+09 times the allowed error",
            "3 of 3 elements of y are wrong."]),
    (Finding("", "it printed more than 8 MB"), ["It printed more than 8 MB."]),
    (None, []),
])  # fmt: skip
def test_a_finding_is_shown_as_far_as_it_goes(first, rows):
    text = drawn(replace(WRONG, first=first))
    assert all(row in text for row in rows), text
    assert ("difference" in text) == any("difference" in row for row in rows) and (
        "Smallest failing case" in text
    ) == bool(first and first.case)


# ---- the line ------------------------------------------------------------------------------------


def carets(text: str) -> str:
    """What stands above the carets, by columns of the terminal."""
    lines = text.splitlines()
    number = next(
        n for n, line in enumerate(lines) if set(line.split("|")[-1].strip().split(" ")[0]) == {"^"}
    )
    begin = cell_len(lines[number][: lines[number].index("^")])
    end = begin + lines[number].count("^")
    column, found = 0, ""
    for character in lines[number - 1]:
        found += character if begin <= column < end else ""
        column += cell_len(character)
    return found


@pytest.mark.parametrize(
    "before",
    [
        "",
        "    ",
        "\t",
        "  \t",
        "\t'a\tb' + ",
        "'宽宽' + ",
        "\t'宽\t☃' + ",
        "'e\u0301' + ",
        "'\x1b[31m' + ",
        "'\u202e' + ",
    ],
)
def test_nothing_in_front_of_it_moves_the_caret(before):
    place = Place("exercises/x.py", 7, f"{before}wrong + 1", len(before), len(before) + 5)
    assert carets(drawn(replace(WRONG, place=place))) == "wrong"


@pytest.mark.parametrize("width", [80, 40, 24])
@pytest.mark.parametrize("where", [0, 100, 300, 594])
def test_a_long_line_is_cut_so_that_the_caret_stays_in_view(width, where):
    source = "x" * where + "y" * 6 + "z" * (594 - where)
    text = drawn(
        replace(WRONG, place=replace(PLACE, source=source, start=where, end=where + 6)), width
    )
    assert carets(text) == "yyyyyy" and max(map(cell_len, text.splitlines())) <= width
    line = next(line for line in text.splitlines() if "yyyyyy" in line)
    assert ("…x" in line, line.endswith("z…")) == (where > 0, where < 594)


def test_carets_over_a_whole_long_line_begin_where_it_begins():
    text = drawn(replace(WRONG, place=replace(PLACE, source="    " + "y" * 300, start=4, end=304)))
    assert (
        "31 |     yyyy" in text
        and carets(text).strip("y") in ("", "…")
        and "\n   | y is stored here\n" in text
    )


def test_a_line_without_columns_has_no_caret():
    text = drawn(replace(WRONG, place=replace(PLACE, start=0, end=0, label="")))
    assert "31 |     squares += deviation * deviation\n\n" in text and "^" not in text


def test_a_mark_behind_the_end_of_the_line_is_shown():
    text = drawn(replace(WRONG, place=Place("exercises/x.py", 7, "if x", 4, 5)))
    assert "7 | if x\n  |     ^\n" in text


# ---- terminals and pipes -------------------------------------------------------------------------


def test_a_pipe_gets_text_and_nothing_else():
    assert "\x1b" not in drawn(WRONG) and drawn(WRONG) == drawn(WRONG, force_terminal=False)


def test_a_terminal_gets_colour_and_a_link_to_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "my exercises"))
    text = drawn(WRONG, force_terminal=True, color_system="standard", legacy_windows=False)
    url = (tmp_path / "my exercises" / "ex07a_layer_norm_forward.py").as_uri()
    file = "exercises/ex07a_layer_norm_forward.py:31"
    assert re.search(
        rf"\x1b]8;id=\d+;{re.escape(url)}\x1b\\(\x1b\[[0-9;]*m)?{re.escape(file)}(\x1b\[0m)?\x1b]8;;\x1b\\",
        text,
    )
    assert re.sub(r"\x1b\[[0-9;]*m|\x1b]8;[^\x1b]*\x1b\\", "", text) == drawn(WRONG)


@pytest.mark.parametrize(
    "path",
    ["exercises/ex07a.py", ".course/kept/a.py", "solutions/ex07a.py", "/tmp/elsewhere/mine.py"],
)
def test_a_path_that_is_shown_is_found_again(path, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "e"))
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "s"))
    assert paths.shown(paths.locate(path)) == path


# ---- all five ------------------------------------------------------------------------------------

PLAIN = Verdict(
    "07a",
    PASS,
    "none",
    "All 2 cases are right.",
    (CASES[0], CASES[0]),
    "cpu",
    "namespaces and Landlock",
    1.5,
)
FIVE = {
    PASS: (PLAIN, "✓ 07a", ["pass, 2 of 2 cases right", "All 2 cases are right.",
        "What you avoided. ", "Further. "]),
    FAIL: (WRONG, "✗ 07a", ["Stuck? `course hint 07a`"]),
    ERROR: (replace(WRONG, status=ERROR, headline="This is not valid Python.", first=None, cases=(),
        common="", question=""), "! 07a",
            ["This is not valid Python.", "31 | ", "Stuck?"]),
    NOT_ATTEMPTED: (replace(PLAIN, status=NOT_ATTEMPTED, message="It is as the course wrote it.",
        cases=()), "○ 07a", ["It is as the course"]),
    GRADER_FAULT: (replace(PLAIN, status=GRADER_FAULT, message="The grader failed.", cases=(),
        printed="last line"), "? 07a",
                   ["The grader failed.", "The grader printed:\nlast line"]),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "begins", "says"), FIVE.values(), ids=FIVE)
def test_each_of_the_five_verdicts(verdict, begins, says):
    text = drawn(verdict)
    assert text.startswith(begins) and all(piece in text for piece in says), text
    assert ("What you avoided." in text) == verdict.passed and ("Stuck?" in text) == (
        verdict.status in (FAIL, ERROR)
    )
    assert "\n\n\n" not in text and text.rstrip().endswith("1.5 s")


def test_a_verdict_from_before_it_had_pieces_shows_its_message():
    assert "All of it in one paragraph." in drawn(
        replace(WRONG, headline="", first=None, place=None, question="", common="")
    )


@pytest.mark.parametrize(
    ("kind", "says"), [("07a", "The kernel printed:\nmine"), ("01a", "The function printed:\nmine")]
)
def test_who_printed_is_said(kind, says):
    assert says in drawn(replace(WRONG, printed="mine"), exercise=catalog.get(kind))


# ---- what a terminal would obey ------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;title\x07 \x9b31m \x7f \r \x08 \u202e \ud800"


def test_no_control_character_of_a_learners_reaches_the_terminal():
    verdict = replace(
        WRONG, headline=f"Of {HOSTILE}", printed=HOSTILE, message=HOSTILE,
        first=replace(FIRST, element="", words=HOSTILE, case=HOSTILE),
        place=replace(PLACE, file=f"/tmp/{HOSTILE[:-1]}.py", source=f"    x = '{HOSTILE}'"),
    )  # fmt: skip
    text = drawn(verdict)
    assert (
        not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", text)
        and text.count(r"\x1b[2J") >= 4
    )
    assert not re.search(r"[\x7f-\x9f\u202e]", verdict.as_json())
    for text in (
        json.loads(verdict.as_json())["message"],
        json.loads(verdict.as_json())["place"]["source"],
    ):
        assert r"\x1b[2J" in text and text.isprintable(), (
            "a program that prints what it got is not fooled either"
        )
    assert from_dict(json.loads(verdict.as_json())).place == verdict.place


def test_line_ends_and_tabs_of_what_was_printed_stay():
    assert replace(WRONG, printed="a\tb\r\nc\rd\n").printed == "a\tb\nc\\rd\n"


def test_a_line_end_stays_only_where_lines_are_allowed():
    """What is said of a case stands on one line: a forged one could go on with a verdict of its
    own."""
    forged = replace(
        WRONG, first=replace(FIRST, element="", words="off\n\n✓ 07a: pass", case="one\ntwo")
    )
    assert "\n✓" not in drawn(forged) and r"off\n\n✓ 07a: pass" in " ".join(drawn(forged).split())


def test_the_carets_stay_below_what_they_point_to():
    place = Place("exercises/x.py", 3, "\t'\x1b\u202e' + wrong + '\x07'", 8, 13, "here")
    shown = quote_line(place)
    assert shown.source[shown.start : shown.end] == "wrong" and shown.carets.index(
        "^"
    ) == shown.source.index("wrong")
    assert replace(place) == place, "made visible twice, it is the same"


@pytest.mark.parametrize(
    "text", ["[bold]x[/bold]", "[link=file:///etc/passwd]x[/link]", "[/]", "\\[red]", ":bomb:"]
)
def test_richs_own_marks_are_text(text):
    verdict = replace(
        WRONG, headline=text, printed=text, first=replace(FIRST, element="", words=text, case=text),
        place=replace(PLACE, file=f"/tmp/{text}.py", source=f"    x = '{text}'"),
    )  # fmt: skip
    assert drawn(verdict).count(text) >= 5


# ---- how long it can be --------------------------------------------------------------------------


def test_no_verdict_is_longer_than_some_pages():
    long = "wörd \x1b" * 20_000
    cases = tuple(CaseResult(f"case {n}", "fail", 2.0, long) for n in range(40))
    place = Place(long, 3, long, 4_000, 4_004, long)
    verdict = Verdict(
        "07a",
        "fail",
        "a_cause",
        long,
        cases,
        "cpu",
        "limits only",
        1.0,
        long,
        "",
        long,
        Finding(long, long),
        place,
        long,
        long,
    )
    assert len(verdict.as_json()) < 64_000 and len(drawn(verdict)) < 32_000
    assert verdict.place is not None and len(verdict.place.source) <= 500
    assert verdict.place.start < verdict.place.end <= len(verdict.place.source)
    assert replace(verdict) == verdict and from_dict(verdict.as_dict()) == verdict


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path):
    """The real command, as a process of its own, into a pipe."""
    (tmp_path / "exercises").mkdir()
    environment = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("COURSE_", "TRITON_", "COLUMNS", "NO_COLOR", "FORCE_COLOR"))
    }
    environment |= {
        "COURSE_EXERCISES": str(tmp_path / "exercises"),
        "COURSE_STATE": str(tmp_path / "state"),
        "PYTHONIOENCODING": "utf-8",
    }

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(paths.ROOT / "course_command.py"), *arguments]
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", env=environment | settings, cwd=tmp_path
        )

    return run


@pytest.mark.parametrize("columns", ["80", "40"])
def test_the_command_shows_line_and_carets_in_a_pipe(course, tmp_path, columns):
    exercise = catalog.get("01a")
    entry = next(entry for entry in mutants.read_mutants(exercise) if entry["id"] == "b_forgotten")
    file = tmp_path / "exercises" / f"{exercise.file}.py"
    file.write_text(mutants.make_text(exercise, entry))
    done = course("check", "01a", COLUMNS=columns)
    number = next(
        n
        for n, line in enumerate(file.read_text().splitlines(), start=1)
        if line.startswith("    y = deviation")
    )
    assert done.returncode == 1 and done.stderr == "" and "\x1b" not in done.stdout
    assert max(map(cell_len, done.stdout.splitlines())) <= int(columns)
    for line in (
        "b is not applied.",
        "  x                 [[1, 7]]",
        "  expected y[0, 0] -1",
        f"exercises/{file.name}:{number}",
        "   |     ^^^^^^",
        "Where does the bias enter y?",
    ):
        assert f"\n{line}" in done.stdout, line


def test_json_has_the_pieces(course, tmp_path):
    exercise = catalog.get("01a")
    file = tmp_path / "exercises" / f"{exercise.file}.py"
    file.write_text(
        texts.read_solution(exercise)
        .replace("unbiased=False", "unbiased=True")
        .replace("correction=0", "correction=1")
        + "\ndef broken(:\n"
    )
    verdict = json.loads(course("check", "01a", "--json").stdout)
    place = verdict["place"]
    assert (verdict["status"], verdict["first"], verdict["question"]) == (
        "error",
        None,
        "",
    ) and verdict["headline"].startswith("This is not valid Python: ")
    assert (
        place["source"][place["start"] : place["end"]] == ":"
        and place["file"] == f"exercises/{file.name}"
    )


def test_a_file_that_is_not_there_is_said_without_a_reset(course, tmp_path):
    done = course("check", "00a", "--file", "nothere.py")
    assert done.returncode == 3 and "There is no file nothere.py in" in done.stdout
    assert "reset" not in done.stdout and "hint" not in done.stdout
    own = course("check", "00a")
    assert own.returncode == 3 and "`course reset 00a` writes it anew" in " ".join(
        own.stdout.split()
    )


def test_the_quoted_line_has_no_tabs_and_no_blanks_at_its_end():
    shown = quote_line(Place("x.py", 12, "\tx = 1  \t", 1, 2))
    assert (shown.gutter, shown.source, shown.below, shown.carets) == (
        "12 | ",
        "    x = 1",
        "   | ",
        "    ^",
    )
