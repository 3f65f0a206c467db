"""The exercise panel of a lesson: task, your code, verdict, and the buttons Check, Hint, Compare,
Solution and Reset.

It uses the functions and the progress file of ``course check`` on the command line. Without a live
kernel the panel is text: the task, and how to check it from a terminal.
"""

from __future__ import annotations

import functools
import html
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets

from course_lib import catalog
from course_lib.base import background, paths
from course_lib.base.errors import CourseError
from course_lib.base.text import make_visible
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise, texts
from course_lib.grading.public import (
    Unreadable,
    Verdict,
    check,
    from_dict,
    list_uncounted,
    read_text,
)
from course_lib.learner import progress, workspace
from course_lib.learner.following import take_verdict
from course_lib.lessons.comparison import compare
from course_lib.lessons.live import VIEW
from course_lib.lessons.panel_page import (
    find_first_line,
    write_asleep,
    write_box,
    write_busy,
    write_code,
    write_counts,
    write_difference,
    write_inline,
    write_link,
    write_task,
    write_verdict,
)
from course_lib.lessons.stylesheets import PANEL_STYLE

# set by tests that run a lesson: every panel then checks at once, and raises if its verdict differs
# from this
EXPECT = "COURSE_EXPECT"


def exercise(exercise_id: str) -> ExercisePanel:
    """Return the panel of an exercise. Call it in the last line of a cell.

    Raises: CourseError if there is no such exercise; AssertionError if the verdict differs from
    ``COURSE_EXPECT``.
    """
    course_exercise = catalog.get(exercise_id)
    panel = ExercisePanel(course_exercise)
    if expected := os.environ.get(EXPECT):
        verdict = panel.check()
        assert verdict.status == expected, (
            f"{course_exercise.id}: {verdict.status}, expected {expected}. {verdict.message}"
        )
    return panel


class ExercisePanel(ipywidgets.VBox):
    """The live panel of one exercise. Callbacks never raise: the panel shows every error in
    words."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.verdict: Verdict | None = None
        self._buttons = {
            name: ipywidgets.Button(
                description=words, tooltip=tip, layout=ipywidgets.Layout(width="auto")
            )
            for name, (words, tip) in _list_buttons().items()
        }
        self._buttons["Check"].button_style = "primary"
        for name, action in {
            "Check": self.check, "Hint": self._hint, "Compare": self._show_comparison,
            "Solution": self._solution, "Reset": self._ask_reset,
        }.items():  # fmt: skip
            self._buttons[name].on_click(functools.partial(self._guard, action))
        self._yes = ipywidgets.Button(description=_("Yes"), layout=ipywidgets.Layout(width="auto"))
        self._no = ipywidgets.Button(description=_("No"), layout=ipywidgets.Layout(width="auto"))
        self._yes.on_click(functools.partial(self._guard, self._accept))
        self._no.on_click(functools.partial(self._guard, self._decline))
        self._asked: Callable[[], None] | None = None
        self._question = ipywidgets.HTML()
        self._confirm = ipywidgets.HBox(
            [self._question, self._yes, self._no],
            layout=ipywidgets.Layout(display="none", align_items="center"),
        )
        self._code = ipywidgets.HTML()
        self._result = ipywidgets.HTML()
        self._extra = ipywidgets.HTML()
        self._show_code()
        self._show_last()
        row = ipywidgets.HBox(
            list(self._buttons.values()), layout=ipywidgets.Layout(flex_flow="row wrap")
        )
        head = ipywidgets.HTML(
            PANEL_STYLE + write_asleep() + write_task(exercise) + write_link(exercise)
        )
        # The code comes last: it is long, and buttons and verdict should fit on one screen.
        super().__init__([head, row, self._confirm, self._result, self._extra, self._code])
        self.add_class("course-exercise")

    def check(self) -> Verdict:
        """Grade the learner's file on disk, show the verdict and store it in the progress file."""
        self._clear()
        self._result.value = write_busy(_("checking {id} ...").format(id=self.exercise.id))
        try:
            self.verdict = check(self.exercise, tell_first_failure=self._tell_first_failure)
        except BaseException:
            self._show_last()  # replace "checking ..." by the last verdict, which still holds
            raise
        # before the verdict is shown: whoever closes the page on seeing it keeps it
        followup = take_verdict(self.verdict)
        self._show_code()
        self._result.value = write_verdict(self.verdict, self.exercise)
        if followup.complaint:
            self._extra.value = write_box(html.escape(followup.complaint), "bad", "alert")
        return self.verdict

    def _tell_first_failure(self, words: str) -> None:
        self._result.value = write_busy(
            _("{words} The other cases still run ...").format(words=words)
        )

    def _hint(self) -> None:
        self._clear()
        count = progress.note_hint(self.exercise.id, len(self.exercise.hints))
        hints = "".join(
            f"<p><b>{_('Hint {number} of {total}.').format(number=number, total=len(self.exercise.hints))}</b>"  # noqa: E501
            f" {write_inline(text)}</p>"
            for number, text in enumerate(self.exercise.hints[:count], start=1)
        )
        self._extra.value = write_box(hints)

    def _show_comparison(self) -> None:
        self._clear()
        self._extra.value = write_busy(_("running {id} ...").format(id=self.exercise.id))
        comparison = compare(self.exercise)
        self._show_code()
        self._extra.value = write_box(comparison)

    def _solution(self) -> None:
        try:
            texts.require_solution(self.exercise)
        except CourseError as absent:
            self._clear()
            self._extra.value = write_box(write_inline(str(absent)))
            return
        if progress.record(self.exercise.id).passed:
            self._show_solution()
        else:
            self._ask(
                _("{id} is not passed yet. Show the solution all the same?").format(
                    id=self.exercise.id
                ),
                self._show_solution,
            )

    def _show_solution(self) -> None:
        self._clear()
        progress.note_solution_seen(self.exercise.id)
        try:
            learner_text = _read(texts.find_file(self.exercise))
        except Unreadable:  # the code box below already says so; show the solution anyway
            learner_text = ""
        self._extra.value = write_difference(self.exercise, learner_text)

    def _ask_reset(self) -> None:
        if workspace.has_work(self.exercise):
            self._ask(_("Start over? Your version is copied to .course/kept/ first."), self._reset)
        else:
            self._reset()

    def _reset(self) -> None:
        self._clear()
        copy = workspace.reset(self.exercise)
        progress.note_reset(self.exercise.id)
        self.verdict = None
        self._show_code()
        self._show_last()
        copy_note = (
            _(" Your version is kept as {file}.").format(file=html.escape(paths.shown(copy)))
            if copy
            else ""
        )
        self._extra.value = write_box(
            _(
                "The file is as the course wrote it.{kept} Reload it in the editor if it is open"
                " there."
            ).format(kept=copy_note)
        )

    def _ask(self, question: str, action: Callable[[], None]) -> None:
        self._clear()
        self._asked = action
        self._question.value = f'<span role="alert">{html.escape(question)}</span>'
        self._confirm.layout.display = ""

    def _accept(self) -> None:
        action = self._asked
        self._clear()
        if action:
            action()

    def _decline(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._asked = None
        self._confirm.layout.display = "none"
        self._extra.value = ""

    def _guard(self, action: Callable[[], Any], _button: ipywidgets.Button) -> None:
        """Disable the buttons, run an action, and show its exception, because Jupyter hides those
        of a callback."""
        controls = [*self._buttons.values(), self._yes, self._no]
        for button in controls:
            button.disabled = True
        background.call_soon(functools.partial(self._act, action, controls))

    def _act(self, action: Callable[[], Any], controls: list[ipywidgets.Button]) -> None:
        try:
            action()
        except (CourseError, OSError) as problem:
            self._extra.value = write_box(
                _("{problem} Nothing of yours was changed.").format(
                    problem=html.escape(str(problem))
                ),
                "bad",
                "alert",
            )
        except Exception as fault:
            where = traceback.extract_tb(fault.__traceback__)[-1]
            words = f"{type(fault).__name__}: {fault} ({where.name}, line {where.lineno})"
            self._extra.value = write_box(
                write_inline(
                    _(
                        "The course itself failed: {words}. Run `course doctor`, and report these"
                        " words."
                    ).format(words=words)
                ),
                "bad",
                "alert",
            )
        finally:
            for button in controls:
                button.disabled = False

    def _show_code(self) -> None:
        path = texts.find_file(self.exercise)
        try:
            text = _read(path)
        except Unreadable as unreadable:
            missing = not (path.exists() or path.is_symlink())
            words = (
                _("There is no {file}. Reset writes it anew.").format(file=paths.shown(path))
                if missing
                else str(unreadable)
            )
            self._code.value = write_box(html.escape(words), role=None)
        else:
            first_line = find_first_line(text)
            visible_code = "\n".join(make_visible(text).split("\n")[first_line - 1 :])
            self._code.value = write_code(
                _("Your code, from line {first} of {file}").format(
                    first=first_line, file=path.name
                ),
                visible_code,
                first_line,
            )

    def _show_last(self) -> None:
        last_verdict = progress.record(self.exercise.id).last
        if not last_verdict:
            self._result.value = write_box(
                _("Not checked yet.") + write_counts(list_uncounted(self.exercise))
            )
            return
        try:
            self._result.value = f"<small>{_('The last verdict:')}</small>" + write_verdict(
                from_dict(last_verdict), self.exercise
            )
        # another version of the course wrote the verdict; the next check replaces it
        except (KeyError, TypeError, ValueError):
            self._result.value = write_box(
                _("The last verdict is from another version of the course. Check again.")
            )

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        invitation = _(
            "Run this cell for the panel with Check, Hint, Compare, Solution and Reset. In a"
            " terminal: `course check {id}`. Your file: `exercises/{file}.py`."
        ).format(id=self.exercise.id, file=self.exercise.file)
        still = (
            PANEL_STYLE + write_task(self.exercise) + write_box(write_inline(invitation), role=None)
        )
        live = super()._repr_mimebundle_(**kwargs) or {}
        text = _("Exercise {id}: {title}. In a terminal: course check {id}").format(
            id=self.exercise.id, title=self.exercise.title
        )
        return {"text/html": still, "text/plain": text} | {
            kind: data for kind, data in live.items() if kind == VIEW
        }


def _list_buttons() -> dict[str, tuple[str, str]]:
    """Return the words on each button, and its tooltip."""
    return {
        "Check": (_("Check"), _("Grade your file as it is saved")),
        "Hint": (_("Hint"), _("One more hint; there are three, and none counts against you")),
        "Compare": (_("Compare"), _("Your outputs against the right ones, element by element")),
        "Solution": (_("Solution"), _("The course's solution, after a pass or when you confirm")),
        "Reset": (_("Reset"), _("Start over; your version is kept aside")),
    }


def _read(path: Path) -> str:
    """Read the learner's file, with ``\\n`` for every line end. Raises: Unreadable."""
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n")
