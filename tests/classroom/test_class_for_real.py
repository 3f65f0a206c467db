"""A small class graded with the real grader: as `course check` would, whoever sits beside."""

from __future__ import annotations

import csv
import io
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_grading import write_file

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.catalog import texts
from course_lib.classroom.grade_class import ClassOptions, choose_tier, find_best_tier, grade_class
from course_lib.grading.cases.hidden import derive_secret
from course_lib.grading.check import check
from course_lib.grading.verdict import FAIL, PASS
from course_lib.sandbox import isolation

ATTACKS = paths.ROOT / "tests" / "attacks"
ONLY = ("01a", "04a")


def write_good(folder):
    for name in ONLY:
        write_file(folder / "ann", name, texts.read_solution(catalog.get(name)))
    odd = texts.read_solution(catalog.get("04a")).replace(
        "    # BEGIN SOLUTION\n", "    import gc\n", 1
    )
    write_file(folder / "cai", "04a", odd + "\n\nwhile True:\n    pass\n")
    write_file(folder / "bob", "01a", texts.make_unsolved_text(catalog.get("01a")))
    write_file(
        folder / "bob",
        "04a",
        texts.read_solution(catalog.get("04a")).replace("(x - new_mean)", "(x - mean)"),
    )


def write_bad(folder):
    for name in ("aborts", "at_exit", "exits_with_zero"):
        write_file(folder / f"m {name}", "01a", (ATTACKS / f"{name}.py").read_bytes())
    write_file(folder / "m latin", "04a", "# ü\n".encode("latin-1"))
    write_file(folder / "m large", "04a", b"#" * (2 << 20))
    write_file(folder / "m broken", "04a", "def (:\n")


def grade(folder, out, secret):
    tier = None if find_best_tier() != isolation.LIMITS else isolation.LIMITS
    options = ClassOptions(only=ONLY, secret_file=secret, tier=tier)
    return grade_class(folder, out, options, lambda: ThreadPoolExecutor(1), 2)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A good class alone, and the same with hostile and unreadable submissions in it."""
    home = tmp_path_factory.mktemp("real")
    secret = home / "secret"
    secret.write_text("a secret of sixteen letters\n")
    write_good(home / "good")
    write_good(home / "mixed")
    write_bad(home / "mixed")
    for name in ("good", "mixed"):
        assert not grade(home / name, home / f"out {name}", secret).faults
    return home


def read_rows(out):
    return {
        row["Student"]: row
        for row in csv.DictReader(
            io.StringIO((out / "gradebook.csv").read_bytes().decode(), newline="")
        )
    }


@pytest.mark.slow
def test_hostile_and_unreadable_submissions_have_a_reason_and_change_nobody_elses_row(graded):
    good, mixed = read_rows(graded / "out good"), read_rows(graded / "out mixed")
    assert {name: row for name, row in mixed.items() if not name.startswith("m ")} == good
    assert (good["ann"]["01a status"], good["ann"]["04a status"], good["bob"]["01a status"],
        good["bob"]["04a status"]) == (
        PASS, PASS, "not attempted", FAIL,
    )  # fmt: skip
    assert all(row["Passed"] == "0" for name, row in mixed.items() if name.startswith("m "))
    for name in ("ann", "bob"):
        (page,) = (graded / "out mixed" / "reports").glob(f"{name}-*.html")
        assert page.read_bytes() == (graded / "out good" / "reports" / page.name).read_bytes()
    causes = {
        (entry["learner"], entry["verdict"]["cause"])
        for entry in map(
            json.loads, (graded / "out mixed" / "results.jsonl").read_text().splitlines()
        )
        if entry["verdict"]
    }
    assert {
        ("m latin", "not_utf8"),
        ("m large", "too_large"),
        ("m broken", "syntax_error"),
    } <= causes


@pytest.mark.slow
def test_a_verdict_is_the_one_of_a_check_with_the_learners_own_secret(graded):
    entries = [
        json.loads(line)
        for line in (graded / "out good" / "results.jsonl").read_text().splitlines()
    ]
    (kept,) = (
        entry["verdict"]
        for entry in entries
        if entry["learner"] == "bob" and entry["exercise"] == "04a"
    )
    file = graded / "good" / "bob" / f"{catalog.get('04a').file}.py"
    verdict = check(
        catalog.get("04a"), file, secret=derive_secret(b"a secret of sixteen letters", "name bob")
    ).as_dict()
    place = kept["place"] and kept["place"] | {"file": None}
    assert kept["place"]["file"] == file.name, (
        "where it lay while it was checked is nobody's business"
    )
    assert kept | {"place": place} == {k: v for k, v in verdict.items() if k != "seconds"} | {
        "place": verdict["place"] | {"file": None}
    }


@pytest.mark.slow
def test_two_learners_with_one_file_have_other_hidden_cases_and_no_page_shows_one(graded):
    folder = graded / "twins"
    wrong = texts.read_solution(catalog.get("04a")).replace("(x - new_mean)", "(x - mean)")
    for name in ("ann", "bob"):
        write_file(folder / name, "04a", wrong)
        write_file(folder / name, "01a", texts.make_unsolved_text(catalog.get("01a")))
    out = graded / "out twins"
    assert grade(folder, out, graded / "secret").checked == 3, (
        "the unsolved text is one file to everybody"
    )
    assert grade(folder, out, graded / "secret").checked == 0
    entries = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    ann, bob = (entry["verdict"] for entry in entries if entry["exercise"] == "04a")
    assert (ann["status"], ann["cause"]) == (bob["status"], bob["cause"]) and ann["hidden"] != bob[
        "hidden"
    ]
    details = [
        [case["detail"] for case in verdict["cases"] if case["detail"]] for verdict in (ann, bob)
    ]
    assert len(set(details[0]) - set(details[1])) > len(details[0]) / 2, (
        "a few kinds have one shape only, with other values"
    )
    for page in (out / "reports").iterdir():
        text = page.read_text()
        assert not any(
            verdict["first"][part] in text for verdict in (ann, bob) for part in ("case", "words")
        )


@pytest.mark.parametrize("best", isolation.TIERS)
@pytest.mark.parametrize("asked", [None, *isolation.TIERS])
def test_no_class_is_graded_with_less_isolation_than_was_asked_for(best, asked):
    order = isolation.TIERS.index
    if asked is None and best != isolation.LIMITS:
        assert choose_tier(asked, best) == best
    elif asked is not None and order(best) <= order(asked):
        assert choose_tier(asked, best) == asked
    else:
        with pytest.raises(EnvironmentFault, match="Nothing was run"):
            choose_tier(asked, best)


@pytest.mark.slow
def test_odd_lines_stand_beside_points_that_stay(graded):
    rows = read_rows(graded / "out good")
    assert rows["cai"]["04a status"] == PASS and rows["ann"]["Odd"] == rows["bob"]["Odd"] == ""
    text = (graded / "good" / "cai" / f"{catalog.get('04a').file}.py").read_text()
    loop = text[: text.index("while True")].count("\n") + 1
    assert rows["cai"]["Odd"].split("; ") == [
        (
            f"04a line {text[: text.index('import gc')].count(chr(10)) + 1}: imports `gc`, which"
            " computes nothing"
        ),
        (
            f"04a line {loop}: code outside of what is checked did not end within 3 s of processor"
            " time"
        ),
    ]
    assert "imports <code>gc</code>" in (graded / "out good" / "class.html").read_text()
