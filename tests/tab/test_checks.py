"""Checks in a browser's Python give the verdicts that they give here."""

from __future__ import annotations

import json

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import mutants
from course_lib.grading.check import check
from course_lib.grading.kind import find_kind

# Kinds of exercises that a tab cannot check, and 15b, which asks the compiler.
LEFT_OUT = {
    exercise.id
    for exercise in catalog.exercises().values()
    if find_kind(exercise.kind).needs_pytorch
} | {"15b"}
# a bound, for a machine that is busy with other work; a check has limits of its own
pytestmark = pytest.mark.timeout(1800)
CHECKED = [exercise for exercise in catalog.exercises().values() if exercise.id not in LEFT_OUT]

_START = """
async () => {
    await new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = "/pyodide/pyodide.js"; script.onload = done; script.onerror = failed;
        document.head.append(script);
    });
    window.python = await loadPyodide({indexURL: location.origin + "/pyodide/"});
    await python.loadPackage("norm-kernels-course", {messageCallback() {}});
    python.FS.mkdirTree("/drive/exercises");
    python.runPython(`
import json
from pathlib import Path
import course_lib
from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.grading.check import check
from course_lib.grading.kind import find_kind

def judge(exercise, text):
    file = Path("/drive/exercises", f"{catalog.get(exercise).file}.py")
    file.write_text(text)
    try:
        return json.dumps(check(catalog.get(exercise)).as_dict())
    except CourseError as problem:
        return json.dumps({"status": "", "message": str(problem)})
`);
}
"""


class Tab:
    """Python in a page."""

    def __init__(self, page):
        self.page = page
        page.evaluate(_START)

    def check(self, exercise, text: str, call: str = "judge.callPromising") -> dict:
        """Check in a worker of the page; with "judge" in the page's own Python, as in a browser
        that cannot wait for a worker."""
        words = (
            f"([id, text]) => {{ const judge = python.globals.get('judge'); return {call}(id,"
            " text); }"
        )
        return json.loads(self.page.evaluate(words, [exercise.id, text]))


@pytest.fixture(scope="module")
def tab(site):
    from chromium import open_browser

    with open_browser() as opened:
        page = opened.new_page()
        page.set_default_timeout(900_000)
        page.goto(f"{site}/empty.html")
        yield Tab(page)


def read_solution(exercise) -> str:
    return (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("exercise", CHECKED, ids=lambda exercise: exercise.id)
def test_a_solution_passes(exercise, tab):
    verdict = tab.check(exercise, read_solution(exercise))
    assert verdict["status"] == "pass", verdict["message"]
    assert verdict["isolation"] == "browser tab"


@pytest.mark.parametrize(
    "exercise", [catalog.get(name) for name in sorted(LEFT_OUT)], ids=lambda exercise: exercise.id
)
def test_what_a_tab_cannot_check_it_says(exercise, tab):
    verdict = tab.check(exercise, read_solution(exercise))
    assert not verdict["status"] and "on your machine" in verdict["message"]


# Wrong solutions that a tab judges otherwise: it has no rows that far apart, asks no compiler, and
# has no bf16 (Pyodide 0.27).
NOT_SEEN = {"offset_32_bit", "column_offset_32_bit", "would_not_compile"}
IN_BF16 = {
    "00a": {"rounded_to_bf16"}, "05a": {"other_is_the_mean"}, "05b": {"lane_counts_in_bf16"},
    "07a": {"rounded_to_the_dtype_of_x", "b_in_the_dtype_of_w"},
    "08a": {"tile_parked_in_y"}, "09a": {"residual_in_the_dtype_of_x", "added_as_loaded"},
    "11a": {"dx_in_the_dtype_of_dy"},
    "11b": {"dy_in_the_dtype_of_x"}, "13a": {"db_in_the_dtype_of_dw"},
}  # fmt: skip


def choose_mutants() -> list:
    """Return the wrong solutions that a tab judges as this process does: one of each exercise, and
    the others for a sweep."""
    chosen = []
    for exercise in CHECKED:
        entries = [
            entry
            for entry in mutants.read_mutants(exercise)
            if entry["cause"] not in NOT_SEEN and entry["id"] not in IN_BF16.get(exercise.id, set())
        ]
        entries.sort(key=lambda entry: bool(entry.get("slow")))
        chosen += mark_others(exercise, entries, [entry["id"] for entry in entries])
    return chosen


def choose_variants() -> list:
    """Return the right solutions of another form: one of each exercise, and the others for a
    sweep."""
    chosen = []
    for exercise in CHECKED:
        files = exercise.list_right_ways()
        chosen += mark_others(exercise, files, [file.stem for file in files])
    return chosen


def mark_others(exercise, cases: list, names: list[str]) -> list:
    """Return a parameter for each case; those after the first have the mark of a sweep."""
    return [
        pytest.param(
            exercise, case, id=f"{exercise.id}-{name}", marks=[pytest.mark.sweep] if number else []
        )
        for number, (case, name) in enumerate(zip(cases, names, strict=True))
    ]


@pytest.mark.parametrize(("exercise", "entry"), choose_mutants())
def test_a_wrong_solution_has_the_same_verdict(exercise, entry, tab, tmp_path):
    text = mutants.make_text(exercise, entry)
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(text, encoding="utf-8")
    here = check(exercise, file, mode="cpu" if exercise.kind == "kernel" else None).as_dict()
    there = tab.check(exercise, text)
    if "bf16" in json.dumps(here):
        assert (here["status"], here["cause"]) == (there["status"], there["cause"])
    else:
        for name in ("seconds", "isolation", "message", "place"):
            here.pop(name, None), there.pop(name, None)
        assert here == there


@pytest.mark.parametrize(("exercise", "file"), choose_variants())
def test_a_right_solution_of_another_form_passes(exercise, file, tab):
    verdict = tab.check(exercise, file.read_text(encoding="utf-8"))
    assert verdict["status"] == "pass", verdict["message"]


def add_before_the_store(line: str) -> str:
    """The solution of 00a with one more line in its kernel."""
    text = read_solution(catalog.get("00a"))
    assert text.count("    tl.store(") == 1
    return text.replace("    tl.store(", f"    {line}\n    tl.store(")


WAYS = pytest.mark.parametrize("call", ["judge.callPromising", "judge"])


@WAYS
def test_a_check_runs_in_a_worker_where_the_browser_can_wait_for_one(call, tab):
    exercise = catalog.get("04b")
    text = read_solution(exercise) + "\nimport course_lib\ncourse_lib.touched = True\n"
    assert tab.check(exercise, text, call)["status"] in ("pass", "error")
    assert (
        tab.page.evaluate("python.runPython('hasattr(course_lib, \"touched\")')") is False
        or call == "judge"
    )


@WAYS
def test_an_endless_loop_is_ended(call, tab):
    verdict = tab.check(
        catalog.get("00a"),
        add_before_the_store("while program >= 0:\n        program = program * 1"),
        call,
    )
    assert verdict["status"] == "fail" and verdict["cause"] == "time_limit", verdict
    assert (
        tab.check(catalog.get("00a"), read_solution(catalog.get("00a")), call)["status"] == "pass"
    )


@WAYS
def test_a_flood_of_words_is_ended(call, tab):
    exercise = catalog.get("04b")
    text = read_solution(exercise)
    flooding = text.replace(
        "    return ", "    while True:\n        print('x' * 10000)\n    return "
    )
    verdict = tab.check(exercise, flooding, call)
    assert verdict["cause"] == "output_flood", verdict
    assert tab.check(exercise, text, call)["status"] == "pass"


# What no line of Python can stop: a call that never ends, and a recursion that ends Python itself.
@pytest.mark.parametrize("line, cause", [("sum(iter(int, 1))", "time_limit"), ("DEEP", "crash")])
def test_what_cannot_be_stopped_ends_its_worker_and_not_the_page(line, cause, tab):
    exercise = catalog.get("04b")
    text = read_solution(exercise)
    deep = "k = []\n    for _ in range(10**6):\n        k = [k]\n    hash(tuple(map(repr, [k])))"
    bad = text.replace("    return ", f"    {deep if line == 'DEEP' else line}\n    return ", 1)
    verdict = tab.check(exercise, bad)
    assert verdict["status"] == "fail" and verdict["cause"] == cause, verdict
    assert tab.check(exercise, text)["status"] == "pass"
    assert tab.page.evaluate("python.runPython('1 + 1')") == 2
