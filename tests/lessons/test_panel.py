"""The exercise panel: the same verdicts as the command line, nothing lost, no exception unseen."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_lib import CourseError, catalog, exercise
from course_lib.authoring import exercises
from course_lib.base import paths
from course_lib.base.translation import LANGUAGES
from course_lib.catalog import texts
from course_lib.grading.verdict import Verdict
from course_lib.learner import progress
from course_lib.lessons import panel as panel_module
from course_lib.lessons import panel_page
from course_lib.lessons.comparison import compare
from course_lib.lessons.live import VIEW

EX = catalog.get("00a")


@pytest.fixture
def learner(own_exercises):
    """A learner's folder with unsolved exercises, and no progress."""
    exercises.write(own_exercises)
    return texts.find_file(EX)


def words(widget) -> str:
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", widget.value))


def press(panel, name: str) -> None:
    panel._buttons[name].click()


def solve(path) -> None:
    path.write_text(texts.read_solution(EX))


def test_it_shows_the_task_the_code_and_the_way_to_the_file(learner):
    panel = exercise("00a")
    head = words(panel.children[0])
    assert (
        "A masked copy" in head and EX.objective in head and "must neither read nor write" in head
    )
    assert "Open exercises/ex00a_masked_copy.py" in head or str(learner) in head
    assert "def copy_kernel" in words(panel._code) and "Copy n elements" not in words(panel._code)
    assert "Not checked yet" in words(panel._result)


@pytest.mark.parametrize("language", LANGUAGES)
def test_edge_cases_lie_in_a_fold(learner, monkeypatch, language):
    monkeypatch.setenv("COURSE_LANG", language)
    for exercise_id in ("01a", "01b", "02a", "02b", "03a"):
        task = panel_page.write_task(catalog.get(exercise_id))
        (fold,) = re.findall(r"<details><summary>(?:(?!</details>).)*</details>", task, re.S)
        assert "Inf" in fold and "Inf" not in task.replace(fold, "")


def test_check_says_what_the_file_is_worth_now(learner):
    panel = exercise("00a")
    press(panel, "Check")
    assert "not attempted" in words(panel._result)
    solve(learner)
    press(panel, "Check")
    assert re.search(
        r"pass, (\d+) of \1 cases right", words(panel._result)
    ) and EX.debrief in words(panel._result)
    assert "tl.store" in words(panel._code), "the code shown is the code that was checked"
    assert progress.record("00a").passed
    learner.write_text(learner.read_text().replace("mask=mask)\n    # END", ")\n    # END"))
    press(panel, "Check")
    assert "writes outside its output" in words(panel._result) and "three lanes over" in words(
        panel._result
    )
    assert "The last verdict" in words(exercise("00a")._result), (
        "a new panel shows the last verdict"
    )


def test_a_verdict_has_each_piece_apart_and_opens_the_line(learner, monkeypatch):
    monkeypatch.setattr(panel_page, "_server_root", lambda: learner.parent.parent)
    learner.write_text(
        texts.read_solution(EX).replace(
            "tl.store(y_ptr + offsets, x, ", "tl.store(y_ptr + offsets, x + 1, "
        )
    )
    panel = exercise("00a")
    press(panel, "Check")
    shown, number = panel._result.value, learner.read_text().split("tl.store")[0].count("\n") + 1
    pieces = [
        "Wrong values.", "Smallest failing case: n = 1", ">expected y[0]</td>", ">got</td>",
        ">difference</td>", f">exercises/{learner.name}:{number}</a>", "y is stored here",
        "which step of yours gives something else?", "8 of 8 cases are wrong", "8 cases</summary>",
    ]  # fmt: skip
    positions = [shown.find(piece) for piece in pieces]
    assert -1 not in positions and positions == sorted(positions), dict(
        zip(pieces, positions, strict=True)
    )
    assert f"&quot;path&quot;: &quot;exercises/{learner.name}&quot;" in shown
    code = html.unescape(re.sub(r"<[^>]+>", "", re.search(r"<pre.*?</pre>", shown, re.S)[0])).split(
        "\n"
    )
    assert code[0] == f"{number} |     tl.store(y_ptr + offsets, x + 1, mask=mask)"
    assert (
        code[1]
        == "   |     "
        + "^" * len("tl.store(y_ptr + offsets, x + 1, mask=mask)")
        + " y is stored here"
    )


def test_a_line_of_the_learners_is_text_and_nothing_else(learner):
    learner.write_text(
        texts.read_solution(EX).replace("offsets < n", "'<img src=x>\x1b[31m' < offsets < nn")
    )
    panel = exercise("00a")
    press(panel, "Check")
    assert (
        "<img" not in panel._result.value
        and "\x1b" not in panel._result.value
        and "<img src=x>" in words(panel._result)
    )


def test_a_file_outside_of_what_jupyterlab_serves_is_named_without_a_link(
    learner, monkeypatch, tmp_path
):
    monkeypatch.setattr(panel_page, "_server_root", lambda: tmp_path / "elsewhere")
    learner.write_text("def (\n")
    panel = exercise("00a")
    press(panel, "Check")
    assert (
        f"<code>exercises/{learner.name}:1</code>" in panel._result.value
        and "commandlinker" not in panel._result.value
    )


@pytest.mark.parametrize("written", ["whole", "in part", "not"])
def test_the_folder_that_is_served_is_what_the_server_of_this_kernel_says(
    written, monkeypatch, tmp_path
):
    """As ``jupyter_server`` writes it to its runtime folder; else the checkout."""
    from jupyter_server.serverapp import ServerApp

    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr("os.getpid", os.getppid)  # the parent of this process is to be the server
    served = tmp_path / "served"
    served.mkdir()
    server = ServerApp(root_dir=str(served))
    server.identity_provider = SimpleNamespace(token="")
    if written != "not":
        server.write_server_info_file()
    if written == "in part":
        file = Path(server.info_file)
        file.write_text(file.read_text()[:40])
    assert panel_page._server_root.__wrapped__() == (served if written == "whole" else paths.ROOT)


def test_a_check_that_ends_in_an_exception_leaves_no_turning_sign(learner, monkeypatch):
    panel = exercise("00a")
    monkeypatch.setattr(panel_module, "check", lambda *_, **__: 1 / 0)
    press(panel, "Check")
    assert "checking" not in words(panel._result) and "ZeroDivisionError" in words(panel._extra)


def test_the_first_wrong_case_is_shown_while_others_still_run(learner, monkeypatch):
    panel, seen = exercise("00a"), []

    def check(exercise, tell_first_failure):
        tell_first_failure("Case 2 of 9 is wrong (<b>): y[0] is 1.")
        seen.append(words(panel._result))
        return Verdict(exercise.id, "fail", "wrong_values", "the verdict")

    monkeypatch.setattr(panel_module, "check", check)
    press(panel, "Check")
    assert seen == [" Case 2 of 9 is wrong (<b>): y[0] is 1. The other cases still run ..."]
    assert "the verdict" in words(panel._result) and "Case 2" not in words(panel._result)


def test_hints_grow_and_end(learner):
    panel = exercise("00a")
    for count in (1, 2, 3, 3):
        press(panel, "Hint")
        assert words(panel._extra).count("Hint ") == count and progress.record("00a").hints == count


def test_the_solution_is_shown_after_a_pass_or_a_yes(learner):
    panel = exercise("00a")
    press(panel, "Solution")
    assert panel._confirm.layout.display == "" and "tl.load" not in words(panel._extra)
    panel._no.click()
    assert panel._confirm.layout.display == "none" and not progress.record("00a").solution_seen
    press(panel, "Solution")
    panel._yes.click()
    assert (
        "+     x = tl.load(x_ptr + offsets, mask=mask)" in words(panel._extra)
        and progress.record("00a").solution_seen
    )
    learner.write_text(texts.make_plain_solution(EX))
    press(panel, "Check")
    press(panel, "Solution")
    assert panel._confirm.layout.display == "none" and "tl.load" in words(panel._extra)
    assert "line for line" in words(panel._extra)


def test_reset_asks_and_keeps_the_work(learner):
    learner.write_text("# mine\n")
    panel = exercise("00a")
    press(panel, "Reset")
    assert learner.read_text() == "# mine\n", "nothing happens before the answer"
    panel._yes.click()
    assert learner.read_text() == texts.make_unsolved_text(EX)
    assert [copy.read_text() for copy in (paths.state() / "kept").iterdir()] == ["# mine\n"]
    assert "kept as .course/kept/" in words(panel._extra)


def test_compare_shows_where_it_is_wrong(learner):
    panel = exercise("00a")
    press(panel, "Compare")
    assert "Nothing to compare" in words(panel._extra) and "<table" not in panel._extra.value
    learner.write_text(texts.read_solution(EX).replace("offsets < n", "offsets < n - 1"))
    press(panel, "Compare")
    shown = panel._extra.value
    assert "1 of 2 elements wrong" in words(panel._extra) and "never written" in words(panel._extra)
    assert [f'<th scope="row">{side}' in shown for side in ("yours", "expected", "difference")] == [
        True
    ] * 3
    assert 'class="course-unwritten" title="never written"' in shown and ">none</td>" in shown


def test_compare_shows_the_case_of_the_verdict(learner):
    learner.write_text(
        texts.read_solution(EX).replace("x, mask=mask)\n    # END", "x + 1, mask=mask)\n    # END")
    )
    panel = exercise("00a")
    press(panel, "Check")
    press(panel, "Compare")
    smallest = panel.verdict.first.case
    assert smallest and f"The case shown: {smallest}." in words(panel._extra)
    assert "BEGIN SOLUTION" not in texts.make_plain_solution(EX)


def test_compare_of_a_launch_says_what_it_holds_and_gives_no_launch_away(tmp_path):
    launches = catalog.get("15b")
    file = tmp_path / f"{launches.file}.py"
    right = "ROWS = max(1, 4096 // BLOCK)"
    file.write_text(texts.read_solution(launches).replace(right, "ROWS = 1"), encoding="utf-8")
    shown = compare(launches, file)
    assert shown.count("<li>✗ M = ") == 3 and shown.count("<li>✓ M = ") == 9
    assert (
        "ROWS = 1, BLOCK = 256, num_warps = 1: an H100" in shown
        and "KB under way" in shown
        and "expected" not in shown
    )


def test_compare_of_a_right_kernel_says_so(learner):
    solve(learner)
    shown = compare(EX)
    assert (
        "00a pass. The case shown: " in shown
        and "all right" in shown
        and ">difference</th>" in shown
    )


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"def (:\n", b"", b"x = 1\n"])
def test_a_file_that_cannot_be_read_is_a_verdict(learner, content):
    learner.write_bytes(content)
    panel = exercise("00a")
    press(panel, "Check")
    assert "error" in words(panel._result) and learner.name in words(panel._result)
    learner.unlink()
    press(panel, "Check")
    assert "There is no file" in words(panel._result) and "Reset writes it anew" in words(
        panel._code
    )


def test_what_goes_wrong_in_a_callback_is_said_in_the_panel(learner, monkeypatch):
    panel = exercise("00a")
    monkeypatch.setattr(panel_module, "check", lambda *_, **__: 1 / 0)
    press(panel, "Check")
    assert "ZeroDivisionError" in words(panel._extra)
    monkeypatch.setattr(
        panel_module.workspace,
        "reset",
        lambda exercise: (_ for _ in ()).throw(OSError("No space left on device")),
    )
    press(panel, "Reset")
    assert "No space left on device" in words(
        panel._extra
    ) and "Nothing of yours was changed" in words(panel._extra)
    assert not any(button.disabled for button in panel._buttons.values())


def test_a_verdict_is_kept_before_it_is_shown(learner):
    """A page that is closed the moment its verdict appears has lost nothing."""
    panel, kept = exercise("00a"), []
    panel._result.observe(
        lambda change: kept.append((words(panel._result), progress.record("00a").passed)), "value"
    )
    solve(learner)
    press(panel, "Check")
    assert [passed for shown, passed in kept if "cases right" in shown] == [True]


def test_a_verdict_that_cannot_be_kept_is_shown_all_the_same(learner, monkeypatch):
    monkeypatch.setattr(
        panel_module.progress,
        "note_verdict",
        lambda verdict: (_ for _ in ()).throw(OSError("No space left on device")),
    )
    panel = exercise("00a")
    solve(learner)
    press(panel, "Check")
    assert "cases right" in words(panel._result) and "No space left on device" in words(
        panel._extra
    )


def test_without_a_kernel_it_is_a_page_of_text(learner):
    bundle = exercise("00a")._repr_mimebundle_()
    assert VIEW in bundle and "course check 00a" in bundle["text/plain"]
    assert "A masked copy" in bundle["text/html"] and "course check 00a" in bundle["text/html"]


def test_learners_text_cannot_become_markup(learner):
    learner.write_text("# <img src=x onerror=alert(1)>\n" + texts.make_unsolved_text(EX))
    assert "<img" not in exercise("00a")._code.value


def test_a_lesson_under_test_demands_its_verdict(learner, monkeypatch):
    monkeypatch.setenv(panel_module.EXPECT, "pass")
    with pytest.raises(AssertionError, match="00a: not attempted, expected pass"):
        exercise("00a")
    solve(learner)
    assert exercise("00a").verdict.passed


def test_an_unknown_exercise_is_named(learner):
    with pytest.raises(CourseError, match="There are: 00a"):
        exercise("99z")


@pytest.mark.parametrize(
    "target", ["/dev/zero", "/proc/kmsg", "ex00a_masked_copy.py", "/etc/hostname"]
)
def test_a_link_is_named_and_never_read(learner, target):
    learner.unlink()
    learner.symlink_to(target)
    panel = exercise("00a")
    assert "is a symbolic link" in words(panel._code)
    panel._buttons["Check"].click()
    assert "is a symbolic link" in words(panel._result)
    panel._buttons["Reset"].click()
    assert not learner.is_symlink() and learner.read_text() == texts.make_unsolved_text(EX)


def test_what_a_browser_would_obey_in_the_code_is_seen(learner):
    learner.write_text(texts.read_solution(EX) + "# \u202e \x1b \x0c <script>alert(1)</script>\n")
    panel = exercise("00a")
    assert (
        r"# \u202e \x1b \x0c <script>" in words(panel._code) and "<script>" not in panel._code.value
    )
    assert not re.search("[\u202e\x1b\x0c]", panel._code.value)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 5000 + "1\n",
        "x = " + "(" * 300 + ")" * 300,
        "\ufeff\ufeffx = 1\n",
        "\r# one\r# two\r",
    ],
)
def test_odd_code_is_shown_all_the_same(learner, text):
    learner.write_text(text)
    panel = exercise("00a")
    assert "Your code, from line 1" in words(panel._code)
    panel._buttons["Check"].click()
    assert "The course itself failed" not in words(panel._extra) and panel.verdict.status == "error"
