"""The lessons: built from their scripts, true in every claim, unsolved and solved; and a broken
notebook does fail."""

from __future__ import annotations

import json
import re

import pytest
from notebook_runs import notebook, run_nbval

import course_lib
from course_lib import catalog
from course_lib.authoring import exercises, nbval
from course_lib.authoring.nbval import find_built, lay_out
from course_lib.authoring.notebooks import VARIES, list_sources, read_source
from course_lib.authoring.page_proof import make_page_proof
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.catalog import texts
from course_lib.lessons import answers
from course_lib.lessons.prediction import read_lesson

pytest.importorskip("nbval", reason="nbval is not installed; `make env` installs it")
LESSONS = list_sources()
# a lesson that has optional tasks alone may do without a picture
GUIDED = {exercise.lesson for exercise in catalog.required().values()}


def built(source) -> dict:
    """The committed notebook that matches its script."""
    try:
        return find_built(source)
    except CourseError as stale:
        pytest.fail(str(stale))


def code_cells(data: dict) -> list[dict]:
    return [cell for cell in data["cells"] if cell["cell_type"] == "code"]


def test_there_are_lessons():
    assert {source.name[:2] for source in LESSONS} >= {"00", "06", "07"}
    assert {exercise.lesson for exercise in catalog.exercises().values()} <= {
        source.name[:2] for source in LESSONS
    }


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_the_notebook_is_built_from_its_script(source):
    built(source)


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_the_notebook_is_executed_and_carries_no_private_state(source):
    data = built(source)
    cells = code_cells(data)
    assert "widgets" not in data["metadata"], (
        "saved widget state hides every figure on static pages"
    )
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), (
        "not run from top to bottom"
    )
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures or source.name[:2] not in GUIDED, (
        f"notebooks/source/{source.name}: no cell shows a picture"
    )
    for output in pictures:
        assert output["metadata"]["image/png"]["alt"].strip(), (
            f"notebooks/source/{source.name}: a picture has no alt text"
        )
    text = json.dumps(data)
    assert str(paths.ROOT) not in text and "/tmp/" not in text, (
        "a path of the machine that built it"
    )


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_keeps_the_rules_that_nbval_cannot_see(source):
    cells = code_cells(built(source))
    assert "".join(cells[0]["source"]).strip() == "import course_lib"
    for cell in cells:
        text = "".join(cell["source"])
        assert not re.search(r"^\s*[%!]", text, re.MULTILINE), (
            f"a magic: a bad one hides every error after it\n{text}"
        )
        assert "raises-exception" not in cell["metadata"].get("tags", []), (
            "such a cell passes when nothing is raised, too"
        )
    cells = code_cells(read_source(source, proof=True))
    claims = [cell for cell in cells if "assert" in cell["source"]]
    assert len(claims) >= len(cells) // 4, (
        f"notebooks/source/{source.name}: {len(claims)} of {len(cells)} code cells have an"
        " assertion; a fourth at least, in cells tagged `check`"
    )


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_page_with_predictions_shows_ideas_and_gives_nothing_away(source):
    data = built(source)
    for cell in code_cells(data):  # the code of an answer stands open, too
        text = "".join(cell["source"])
        lines = text.splitlines()
        assert len(lines) <= 15 and max(map(len, lines)) <= 100, (
            f"a visible cell is too large to read:\n{text}"
        )
        assert not re.search(r"^\s*assert\b", text, re.MULTILINE), (
            f"a claim belongs into a check cell:\n{text}"
        )
    before: list[str] = []
    for cell in data["cells"]:
        before += re.findall(r'^predict\("([^"]+)"\)', "".join(cell["source"]), re.MULTILINE)
        if "answer" not in cell["metadata"].get("tags", []):
            continue
        waits_for = cell["metadata"][answers.METADATA]
        assert waits_for == before[-len(waits_for) :] and not cell["outputs"], "an answer lies open"
    asked = re.findall(
        r'predict\("([^"]+)"\)', "\n".join("".join(cell["source"]) for cell in data["cells"])
    )
    assert asked == list(read_lesson(source.stem[:2])), (
        "the page asks its predictions once each, in the order of their file"
    )
    proof = "\n".join(
        cell["source"]
        for cell in read_source(source, proof=True).cells
        if "check" in cell.metadata.get("tags", [])
    )
    assert [key for key in asked if f'find("{key}")' not in proof] == [], (
        "no check cell proves the answer"
    )


def test_a_script_makes_a_page_and_its_proof(tmp_path):
    script = tmp_path / "99_some.py"
    parts = [
        "# %%\nimport course_lib",
        '# %% tags=["check"]\nassert True',
        '# %%\npredict("99-a")',
        '# %%\npredict("99-b")',
        '# %% tags=["answer"]\nprint(2)',
        "# %% [markdown]\n# Two more questions.",
        '# %%\npredict("99-c")',
        '# %% tags=["answer"]\nprint(3)',
        (
            '# %% tags=["step"]\n# BEGIN SOLUTION\n#: Make three.\nx = 3\n# END'
            ' SOLUTION\nstep("99-three")'
        ),
        '# %% [markdown] tags=["dive"]\n# ## Why three',
    ]
    script.write_text("\n\n".join(parts))
    page, proof = read_source(script), read_source(script, proof=True)
    assert [cell["id"][-1] for cell in page.cells] == list("023456789")
    assert [cell["id"][-1] for cell in proof.cells] == list("0123456789")
    waiting = {
        cell.source: cell.metadata[answers.METADATA]
        for cell in page.cells
        if answers.METADATA in cell.metadata
    }
    assert waiting == {"print(2)": ["99-a", "99-b"], "print(3)": ["99-c"]}, (
        "predictions that stand together are answered together"
    )
    assert page.cells[7].source == '# YOUR CODE, 1 line: Make three.\nstep("99-three")'
    passed = 'from course_lib.lessons.stepping import assert_passed; assert_passed("99-three")'
    assert proof.cells[8].source == f'x = 3\nstep("99-three")\n{passed}'
    assert page.cells[8].metadata["jp-MarkdownHeadingCollapsed"]
    assert not any(
        {answers.METADATA, "jp-MarkdownHeadingCollapsed"} & cell.metadata.keys()
        for cell in proof.cells
    )


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_has_the_panels_of_its_exercises(source):
    text = "\n".join("".join(cell["source"]) for cell in code_cells(built(source)))
    for exercise in catalog.exercises().values():
        here = f'exercise("{exercise.id}")' in text
        assert here == (exercise.lesson == source.name[:2]), (
            f"{source.name} {'has a' if here else 'lacks the'} panel of {exercise.id}"
        )


@pytest.mark.slow
@pytest.mark.timeout(900)  # lesson 14 trains with the learner's kernels, which the interpreter runs
@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_a_lesson_runs_under_nbval(source, tmp_path):
    """Run every cell with the unsolved exercises, and again with the solutions what may depend on
    them.

    Each panel asserts its verdict both times.
    """
    wanted = nbval.Run((nbval.UNSOLVED, nbval.SOLVED), course_lib.MODE)
    lay_out(tmp_path, {source: make_page_proof(source)}, wanted)
    # the test's own time limit is the bound, not that of a cell: on a busy machine a training takes
    # minutes
    run = run_nbval(tmp_path, cell_seconds=1000, COURSE_EXPECT=wanted.expected)
    assert run.exit_code == 0, run.output[-6000:]
    cells = code_cells(read_source(source, proof=True))
    panel = next(
        (
            n
            for n, cell in enumerate(cells)
            if re.search(r"^exercise\(", cell["source"], re.MULTILINE)
        ),
        0,
    )
    passed, skipped = (
        int((re.search(rf"(\d+) {word}", run.output) or [0, 0])[1])
        for word in ("passed", "skipped")
    )
    assert passed + skipped == 2 * len(cells) + 1 and skipped <= panel, run.output[-6000:]


# a notebook with one fault in an otherwise sound lesson, and what the run has to say of it
CLAIM = "assert 2 * 2 == 4"
BROKEN = {
    "a broken claim": (["assert 2 + 2 == 5"], "AssertionError"),
    "an error": (["course_lib.no_such_thing", CLAIM], "no attribute 'no_such_thing'"),
    "a printed failure": (
        ["print('07a\\nFAILED: 3 of 20 cases')", CLAIM],
        "printed a failure: FAILED: 3 of 20 cases",
    ),
    "an error behind a bad magic": (
        ["%no_such_magic\nassert False"],
        "printed a failure: UsageError",
    ),
    "a printed traceback": (
        [
            (
                "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n   "
                " traceback.print_exc()"
            ),
            CLAIM,
        ],
        "printed a failure: Traceback",
    ),
    "an exercise with another verdict": (
        ["from course_lib import exercise\nexercise('00a')", CLAIM],
        "00a: not attempted, expected pass",
    ),
    "a kernel that is killed": (
        ["import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", CLAIM],
        "the kernel was killed by SIGKILL (often because memory ran out), while it ran this cell",
    ),
    "a kernel that ends": (
        ["import os\nos._exit(3)", CLAIM],
        "the kernel ended by itself, with exit code 3",
    ),
    "no claim": (["print(4)"], "proves nothing, so it cannot fail: no cell asserts anything"),
    "the other mode": (
        ["# no word", CLAIM],
        f"this run is for {course_lib.MODE.upper()} mode, and its first cell chose no mode",
    ),
}
if course_lib.MODE == "cpu":
    BROKEN["words on stderr"] = (
        ["import warnings", "warnings.warn('of no interest')", CLAIM],
        "wrote to stderr",
    )


@pytest.mark.slow
@pytest.mark.timeout(900)  # less than the 1000 seconds of a cell
def test_broken_notebooks_fail_with_the_reason_and_a_sound_one_passes(tmp_path):
    """One run for all of them. A kernel that is dead is not waited for as a cell that hangs is: the
    test would end by its own time limit."""
    folder = tmp_path / "notebooks"
    names = {f"broken_{n:02}.ipynb": fault for n, fault in enumerate(BROKEN)}
    for name, fault in names.items():
        first = "import os" if fault == "the other mode" else "import course_lib"
        notebook(folder / name, first, *BROKEN[fault][0])
    notebook(folder / "no_code.ipynb")
    notebook(folder / "sound.ipynb", "import course_lib", f"print('2 x 2 =', 2 * 2)\n{CLAIM}")
    exercises.write(tmp_path / "exercises")
    run = run_nbval(
        tmp_path, cell_seconds=1000, COURSE_EXPECT="pass", COURSE_NBVAL_DEVICE=course_lib.MODE
    )
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*?(\w+\.ipynb)", run.output, re.MULTILINE))
    wanted = {*names, "no_code.ipynb"}
    assert failed == wanted, (
        f"passed: {[names[n] for n in set(names) - failed]}\n{run.output[-4000:]}"
    )
    assert "no_code.ipynb proves nothing, so it cannot fail: it has no code cell" in run.output
    assert [fault for fault, (_, reason) in BROKEN.items() if reason not in run.output] == [], (
        run.output
    )


@pytest.mark.slow
def test_a_cell_that_hangs_is_stopped_and_named(tmp_path):
    fails = "assert not 'what the cell above left'"
    notebook(tmp_path / "notebooks" / "hung.ipynb", "import time\ntime.sleep(600)", fails)
    run = run_nbval(tmp_path, cell_seconds=3)
    assert run.exit_code == 1 and "hung.ipynb::Cell 1" in run.output
    assert "a cell above it ran out of time" in run.output and "INTERNALERROR" not in run.output
    assert (
        "Timeout of 3 seconds exceeded executing cell" in run.output
        and "time.sleep(600)" in run.output
    )


def test_a_run_for_a_gpu_refuses_to_pass_without_one(monkeypatch):
    """Nothing is run in the interpreter in its place; what a person chose for other runs does not
    reach the notebooks."""
    monkeypatch.setattr(runtime, "gpu_name", lambda: None)
    with pytest.raises(
        EnvironmentFault, match="PyTorch sees no GPU on this machine, and nothing was run"
    ):
        nbval.run(["00"], nbval.Run(device="gpu"), workers=1, cell_seconds=1, pytest_args=[])
    assert nbval.main(["--gpu", "00"]) == 78
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert not {"TRITON_INTERPRET", "COURSE_DEVICE"} & nbval.make_environment(paths.ROOT).keys()


def test_a_lesson_that_is_not_there_is_named(capsys):
    assert nbval.main(["98"]) == 1
    assert "has no lesson 98" in capsys.readouterr().err


def test_the_learners_files_are_not_what_the_tests_run(tmp_path):
    """The tests above take generated exercises; this is the function they rely on."""
    exercises.write(tmp_path)
    for exercise in catalog.exercises().values():
        assert (tmp_path / f"{exercise.file}.py").read_text() == texts.make_unsolved_text(exercise)


@pytest.mark.parametrize("source", LESSONS, ids=lambda s: s.stem)
def test_every_cell_that_prints_is_compared_or_says_why_not(source, tmp_path):
    """The outputs of answers lie in a file of their own and are compared, too."""
    proof = make_page_proof(source)
    assert not proof.changes and proof.stored_by_build and not proof.never_run
    printing = [cell for cell in proof.notebook.cells if nbval.is_printing(cell)]
    lay_out(tmp_path, {source: proof}, nbval.Run())
    laid_out = json.loads((tmp_path / "notebooks" / f"{source.stem}.ipynb").read_text())
    assert [cell["source"] for cell in laid_out["cells"]] == [
        cell.source for cell in read_source(source, proof=True).cells
    ]
    compared = [
        cell["id"]
        for cell in laid_out["cells"]
        if nbval.COMPARED in cell["metadata"].get("tags", [])
    ]
    assert compared == [
        cell.id for cell in printing if not nbval.find_reason(cell, solved=False, device="cpu")
    ]
    assert len(compared) > 1, (
        f"notebooks/source/{source.name}: no cell but the first prints what a run can compare; let"
        " one print"
    )
    for cell in proof.notebook.cells:
        reasons = cell.metadata.get(VARIES)
        if reasons is not None:
            assert cell.id in [one.id for one in printing], (
                f"{cell.id} prints nothing that could vary"
            )
            assert reasons.keys() <= {"gpu", "solved", "always"} and all(
                len(reason.split()) > 3 for reason in reasons.values()
            )
    assert not [cell for cell in read_source(source).cells if VARIES in cell.metadata], (
        "a learner's notebook has no use for it"
    )


def test_a_reason_counts_for_its_kind_of_run():
    cell = {"metadata": {VARIES: {"gpu": "measured there", "solved": "your kernels"}}}
    found = [
        nbval.find_reason(cell, solved=solved, device=device)
        for solved in (False, True)
        for device in ("cpu", "gpu")
    ]
    assert found == ["", "measured there", "your kernels", "measured there"]
    assert (
        nbval.find_reason({"metadata": {VARIES: {"always": "a clock"}}}, solved=False, device="cpu")
        == "a clock"
    )
    assert nbval.find_reason({"metadata": {}}, solved=True, device="gpu") == ""
    assert nbval.find_reason(cell, solved=False, device="cpu", stored_by_build=False), (
        "somebody may have run it on a GPU"
    )


@pytest.mark.slow
def test_a_changed_output_fails_and_one_that_only_names_the_machine_passes(tmp_path):
    """The second cell prints in GPU mode what the stored notebook has in CPU mode."""
    folder = tmp_path / "notebooks"
    here = (
        "course: GPU mode, NVIDIA L4 (found a GPU). Kernels are compiled.",
        "tensor([2.5000], device='cuda:0')",
    )
    stored = (
        "course: CPU mode (no GPU found). Kernels run in Triton's interpreter: right, and slow.",
        "tensor([2.5000])",
    )
    for name, was in (("changed", "4"), ("same", "5")):
        path = folder / f"{name}.ipynb"
        notebook(
            path,
            "print(2 + 3)",
            f"print({here[0]!r}, {here[1]!r}, sep='\\n')",
            tags={0: [nbval.COMPARED], 1: [nbval.COMPARED]},
        )
        data = json.loads(path.read_text())
        for cell, text in zip(data["cells"], (was, "\n".join(stored)), strict=True):
            cell |= {
                "execution_count": 1,
                "outputs": [{"output_type": "stream", "name": "stdout", "text": f"{text}\n"}],
            }
        path.write_text(json.dumps(data))
    run = run_nbval(tmp_path)
    assert "1 failed, 3 passed" in run.output and "changed.ipynb::Cell 1" in run.output, run.output
    assert "- 4\n+ 5\n" in run.output and "was stored" in run.output
