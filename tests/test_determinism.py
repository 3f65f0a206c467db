"""One file, one verdict: the same bytes apart from the time it took, whoever asks, how often, and how many at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import course_lib
from course_lib import catalog, paths, workspace
from course_lib.grading import servers
from course_lib.grading.check import check

HERE = Path(__file__).parent
ASKED = ("00a", "01a", "01b", "06b")


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> list[tuple[str, Path]]:
    """A right, a wrong, an unsolved, an unreadable, a raising and a chatty file of each exercise."""
    folder = tmp_path_factory.mktemp("submissions")
    found = []
    for exercise in map(catalog.get, ASKED):
        right = workspace.solution_text(exercise)
        prose, imports, code = right.partition("\nimport ")
        mutants = tomllib.loads((HERE / "mutants" / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["mutant"]
        mutant = next(entry for entry in mutants if not entry.get("slow"))
        for find, replacement in mutant["edits"]:
            code = code.replace(find, replacement)
        texts = {
            "right": right, "wrong": prose + imports + code, "unsolved": workspace.generated_text(exercise), "unreadable": right + "\n(",
            "raising": right.replace("    # BEGIN SOLUTION\n", "    assert 0, 'of my own'\n    # BEGIN SOLUTION\n"),
            "chatty": right.replace("    # BEGIN SOLUTION\n", "    print('here')\n    # BEGIN SOLUTION\n"),
        }  # fmt: skip
        for name, text in texts.items():
            file = folder / name / f"{exercise.file}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            found.append((exercise.id, file))
    return found


def told(submission: tuple[str, Path]) -> str:
    verdict = check(catalog.get(submission[0]), submission[1])
    assert verdict.status != "grader fault", verdict.message
    return verdict.timed(0).as_json()


@pytest.fixture(scope="module")
def first(submissions) -> list[str]:
    return [told(submission) for submission in submissions]


def test_all_kinds_of_verdicts_are_among_them(first):
    assert {json.loads(text)["status"] for text in first} == {"pass", "fail", "error", "not attempted"}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_says_the_same(workers, submissions, first):
    with ThreadPoolExecutor(workers) as pool:
        again = list(pool.map(told, submissions))
    for submission, one, other in zip(submissions, first, again, strict=True):
        assert one == other, submission


def test_a_cold_server_says_the_same(submissions, first):
    for submission, said in list(zip(submissions, first, strict=True))[:8]:
        servers.stop_all()
        assert told(submission) == said, submission


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="a GPU is not for two processes of a test at a time")
def test_another_process_says_the_same(submissions, first):
    code = (
        "import sys\nfrom pathlib import Path\nfrom course_lib import catalog\nfrom course_lib.grading.check import check\n"
        "for name in sys.argv[1:]:\n    exercise, _, file = name.partition(' ')\n"
        "    print(check(catalog.get(exercise), Path(file)).timed(0).as_json(), end='\\0')\n"
    )
    chosen = list(zip(submissions, first, strict=True))[:12]
    result = subprocess.run(
        [sys.executable, "-c", code, *(f"{exercise} {file}" for (exercise, file), _ in chosen)],
        capture_output=True, text=True, timeout=240, cwd=paths.ROOT, check=True,
    )  # fmt: skip
    assert result.stdout.split("\0")[:-1] == [said for _, said in chosen]
