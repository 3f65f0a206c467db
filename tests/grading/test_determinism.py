"""One file, one verdict: the same bytes apart from the time it took, whoever asks, how often, and
how many at a time."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import mutants, texts
from course_lib.grading.check import check
from course_lib.sandbox import servers

ASKED = ("00a", "01a", "02a", "08a")


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> list[tuple[str, Path]]:
    """A right, a wrong, an unsolved, an unreadable, a raising and a chatty file of each
    exercise."""
    folder = tmp_path_factory.mktemp("submissions")
    found = []
    for exercise in map(catalog.get, ASKED):
        right = texts.read_solution(exercise)
        prose, imports, code = right.partition("\nimport ")
        mutant = next(entry for entry in mutants.read_mutants(exercise) if not entry.get("slow"))
        for find, replacement in mutant["edits"]:
            code = code.replace(find, replacement)
        files = {
            "right": right, "wrong": prose + imports + code,
            "unsolved": texts.make_unsolved_text(exercise), "unreadable": right + "\n(",
            "raising": right.replace("    # BEGIN SOLUTION\n",
                "    assert 0, 'of my own'\n    # BEGIN SOLUTION\n"),
            "chatty": right.replace("    # BEGIN SOLUTION\n",
                "    print('here')\n    # BEGIN SOLUTION\n"),
        }  # fmt: skip
        for name, text in files.items():
            file = folder / name / f"{exercise.file}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            found.append((exercise.id, file))
    return found


SECRET = "a secret that is always the same"


def told(submission: tuple[str, Path], secret: str | None = None) -> str:
    verdict = check(catalog.get(submission[0]), submission[1], secret=secret)
    assert verdict.status != "grader fault", verdict.message
    if course_lib.MODE == "gpu":  # which program of a GPU prints first is nobody's to say
        verdict = dataclasses.replace(
            verdict, printed="\n".join(sorted(set(verdict.printed.split("\n"))))
        )
    return verdict.timed(0).as_json()


@pytest.fixture(scope="module")
def first(submissions) -> list[str]:
    return [told(submission) for submission in submissions]


def test_all_kinds_of_verdicts_are_among_them(first):
    assert {json.loads(text)["status"] for text in first} == {
        "pass",
        "fail",
        "error",
        "not attempted",
    }


@pytest.mark.parametrize("workers", [2, 4])  # one worker said it first
def test_any_number_of_workers_says_the_same(workers, submissions, first):
    with ThreadPoolExecutor(workers) as pool:
        again = list(pool.map(told, submissions))
    for submission, one, other in zip(submissions, first, again, strict=True):
        assert one == other, submission


def test_a_cold_server_says_the_same(submissions, first):
    for submission, said in list(zip(submissions, first, strict=True))[:8]:
        servers.stop_all()
        assert told(submission) == said, submission


@pytest.fixture(scope="module")
def hidden(submissions) -> list[str]:
    """What hidden cases say of the same files."""
    return [told(submission, SECRET) for submission in submissions]


def test_hidden_cases_say_the_same_again(submissions, first, hidden):
    with ThreadPoolExecutor(2) as pool:
        again = list(pool.map(lambda submission: told(submission, SECRET), submissions))
    for submission, one, other in zip(submissions, hidden, again, strict=True):
        assert one == other, submission
    # the status is that of the visible cases, and what it rests on is something else
    assert [json.loads(text)["status"] for text in hidden] == [
        json.loads(text)["status"] for text in first
    ]
    for one, other in zip(map(json.loads, first), map(json.loads, hidden), strict=True):
        assert (
            (one["cases"] != other["cases"] or not one["cases"])
            and other["hidden"]
            and not one["hidden"]
        )


@pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a GPU is not for two processes of a test at a time"
)
def test_another_process_says_the_same(submissions, first, hidden):
    code = (
        "import sys\nfrom pathlib import Path\nfrom course_lib import catalog\nfrom"
        " course_lib.grading.check import check\nfor name in sys.argv[2:]:\n    exercise, _, file ="
        " name.partition(' ')\n    for secret in (None, sys.argv[1]):\n       "
        " print(check(catalog.get(exercise), Path(file), secret=secret).timed(0).as_json(),"
        " end='\\0')\n"
    )
    chosen = list(zip(submissions, first, hidden, strict=True))[:12]
    result = subprocess.run(
        [sys.executable, "-c", code, SECRET,
            *(f"{exercise} {file}" for (exercise, file), _, _ in chosen)],
        capture_output=True, text=True, timeout=240, cwd=paths.ROOT, check=True,
    )  # fmt: skip
    assert result.stdout.split("\0")[:-1] == [said for _, *both in chosen for said in both]
