"""The pages that commands write: `course status --html`, and the look of it and of `course bench
--rows --html`."""

from __future__ import annotations

import html
import re
import tomllib

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.cli import app, bench
from course_lib.learner import progress, workspace
from course_lib.lessons.prediction import find

TASKS = sum(exercise.optional for exercise in catalog.exercises().values())
SURPRISE, EXPECTED = find("03-ten-thousand"), find("04-chains")


@pytest.fixture(autouse=True)
def learner(own_exercises):
    for exercise in catalog.exercises().values():
        workspace.reset(exercise)


def write_status(file) -> str:
    assert app.run(["status", "--html", str(file)]) == 0
    return html.unescape(file.read_text(encoding="utf-8"))


def test_the_page_of_a_course_that_is_not_begun(tmp_path):
    page = write_status(tmp_path / "out" / "status.html")
    assert (
        "0 of 27 exercises passed" in page
        and f"0 of {TASKS} passed" in page
        and "0 predictions made" in page
    )
    assert page.count("not attempted") == len(catalog.required()) and "not passed yet" in page
    assert not progress.file().exists()


def test_the_page_has_passes_surprises_and_answers_to_what_was_asked_again(tmp_path, capsys):
    wrong = texts.read_solution(catalog.get("00a")).replace("tl.store(y_ptr", "tl.store(1 + y_ptr")
    texts.find_file(catalog.get("00a")).write_text(wrong)
    for name in ("06a", "02c"):
        texts.find_file(catalog.get(name)).write_text(texts.read_solution(catalog.get(name)))
        assert app.run(["check", name]) == 0
    assert app.run(["check", "00a"]) == 1
    progress.note_hint("06a", 3)
    progress.note_prediction(SURPRISE.id, SURPRISE.choices[0], surprised=True)
    progress.note_prediction(EXPECTED.id, "0.0625", surprised=False)
    progress.note_recalled("05", EXPECTED.id, "0.125", surprised=True)
    before = progress.file().read_bytes()
    page = write_status(tmp_path / "status.html")
    assert progress.file().read_bytes() == before
    assert "written to" in capsys.readouterr().out
    passed_at = progress.read()["06a"].passed_at.replace("T", " ")[:16]
    assert re.search(r"fail</span>\s+1 check</td>", page)
    assert (
        "1 of 27 exercises passed" in page
        and f"{passed_at}, 1 check, 1 hint" in page
        and f"1 of {TASKS} passed" in page
    )
    surprises, again = page.split("<h2>Predictions that surprised</h2>")[1].split(
        "<h2>Asked again</h2>"
    )
    assert "2 predictions made in the lessons; 1 of the answers" in surprises
    assert (
        SURPRISE.recall in surprises
        and SURPRISE.choices[0] in surprises
        and SURPRISE.write_result() in surprises
    )
    assert EXPECTED.question not in surprises
    assert (
        "0 of 1 answers" in again
        and "In lesson 05" in again
        and EXPECTED.recall in again
        and EXPECTED.write_result() in again
    )
    code = page.split("<h2>What you wrote</h2>")[1].split("<h2>The ladder</h2>")[0]
    assert code.count("<details") == 2 and "def row_sum_kernel(" in code
    assert "masked_copy_kernel" not in code, "00a does not pass"
    assert "06a The sum of each row: yours passed: it moves 1.00 times the least bytes" in page, (
        "the ladder has the kernel that passed"
    )


def test_the_page_escapes_what_a_learner_wrote_and_leaves_out_a_question_that_is_gone(tmp_path):
    progress.note_prediction(SURPRISE.id, "<script>alert(1)</script>", surprised=True)
    progress.note_prediction("03-no-such-question", "said of it", surprised=True)
    write_status(tmp_path / "status.html")
    page = (tmp_path / "status.html").read_text()
    assert (
        "&lt;script&gt;alert(1)" in page
        and "<script>alert" not in page
        and "said of it" not in page
    )
    assert "1 predictions made in the lessons; 1 of the answers were a surprise." in page, (
        "a question that is gone is not counted"
    )


def test_code_that_was_taken_back_is_not_on_the_page_and_hunts_are_counted(tmp_path):
    exercise = catalog.get("06a")
    texts.find_file(exercise).write_text(texts.read_solution(exercise))
    assert app.run(["check", "06a"]) == 0
    progress.note_hunt("play", "06a-any", "blind")
    page = write_status(tmp_path / "status.html")
    assert "def row_sum_kernel(" in page and "0 of 1 won" in page
    workspace.reset(exercise)
    page = write_status(tmp_path / "status.html")
    assert "def row_sum_kernel(" not in page and "1 of 27 exercises passed" in page


@pytest.mark.parametrize("arguments", [["a.png"], ["a.html", "07a"], ["a.html", "--json"]])
def test_the_page_is_html_of_the_whole_course(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(["status", "--html", *arguments]) == app.BAD_REQUEST
    assert "--html writes" in capsys.readouterr().err and not list(tmp_path.glob("a.*"))


def test_the_package_has_every_template():
    with (paths.ROOT / "pyproject.toml").open("rb") as opened:
        shipped = tomllib.load(opened)["tool"]["setuptools"]["package-data"]
    for file in paths.PACKAGE.rglob("*.html"):
        room = file.relative_to(paths.PACKAGE).parts[0]
        assert any(
            file in (paths.PACKAGE / room).glob(pattern)
            for pattern in shipped.get(f"course_lib.{room}", [])
        ), file


@pytest.mark.browser
def test_pages_fit_phones_and_fetch_nothing(tmp_path, browser):
    progress.note_prediction(SURPRISE.id, "x" * 190, surprised=True)
    write_status(tmp_path / "status.html")
    list(bench.run("all", columns="65536", rows=16, plot=tmp_path / "shape.html"))
    for name in ("status.html", "shape.html"):
        assert set(re.findall(r"https?://[^\s\"'<]*", (tmp_path / name).read_text())) == {
            "http://www.w3.org/2000/svg"
        }
    page = browser.new_page(color_scheme="dark")
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    for name in ("status.html", "shape.html"):
        page.goto((tmp_path / name).as_uri())
        page.wait_for_function(
            "document.querySelector('[data-picture]').shadowRoot?.querySelector('svg')"
        )
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width and not messages
    page.close()
