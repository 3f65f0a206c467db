"""The exercise panel of a lesson: task, your code, verdict, and the buttons Check, Hint, Compare, Solution and Reset.

The same checks as ``course check`` on the command line, from the same functions; progress is the same file. Without a
live kernel the panel is a page of text: the task, and how to check it from a terminal.
"""

from __future__ import annotations

import ast
import functools
import html
import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.text import make_visible
from course_lib.catalog import Exercise, texts
from course_lib.grading.public import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    SIGNS,
    Report,
    Unreadable,
    Verdict,
    check,
    from_dict,
    make_report,
    quote_line,
    read_text,
)
from course_lib.learner import progress, workspace
from course_lib.lessons import style
from course_lib.lessons.comparison import compare
from course_lib.lessons.live import VIEW

EXPECT = "COURSE_EXPECT"  # tests run a lesson with it set: every panel then checks at once, and raises if its verdict is another

_EDGES = {PASS: "#007F5F", FAIL: "#B03A00", ERROR: "#B03A00", NOT_ATTEMPTED: "#8A6D00", GRADER_FAULT: "#7D1145"}
# width 0, at least all there is: a long line of code inside scrolls, and does not make the box wider than the page
_BOX = (
    f"background: {style.PANEL}; color: {style.INK}; border-radius: 4px; padding: 8px 12px; margin: 4px 0; line-height: 1.45; "
    "width: 0; min-width: 100%; box-sizing: border-box"
)
_APART = "margin: 8px 0"
_CODE = f"background: {style.PANEL}; color: {style.INK}; margin: 4px 0; overflow: auto; white-space: pre"
_SPINNER = (
    "<style>@keyframes course-turn { to { transform: rotate(360deg) } }</style>"
    '<span style="display: inline-block; width: 1em; height: 1em; border: 3px solid #999; border-top-color: transparent; '
    'border-radius: 50%; animation: course-turn 0.8s linear infinite; vertical-align: -2px"></span> '
)


def exercise(exercise_id: str) -> ExercisePanel:
    """The panel of an exercise, for the last line of a cell.

    Raises: CourseError if there is no such exercise; AssertionError if ``COURSE_EXPECT`` names another verdict than the check gives.
    """
    wanted = catalog.get(exercise_id)
    panel = ExercisePanel(wanted)
    if expected := os.environ.get(EXPECT):
        verdict = panel.check()
        assert verdict.status == expected, f"{wanted.id}: {verdict.status}, expected {expected}. {verdict.message}"
    return panel


class ExercisePanel(ipywidgets.VBox):
    """One exercise, live. Callbacks never raise: what goes wrong is shown in the panel, in words."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.verdict: Verdict | None = None
        self._buttons = {
            name: ipywidgets.Button(description=name, tooltip=tip, layout=ipywidgets.Layout(width="auto"))
            for name, tip in _TIPS.items()
        }
        self._buttons["Check"].button_style = "primary"
        for name, action in {
            "Check": self.check, "Hint": self._hint, "Compare": self._show_comparison, "Solution": self._solution, "Reset": self._ask_reset,
        }.items():  # fmt: skip
            self._buttons[name].on_click(functools.partial(self._guarded, action))
        self._yes = ipywidgets.Button(description="Yes", layout=ipywidgets.Layout(width="auto"))
        self._no = ipywidgets.Button(description="No", layout=ipywidgets.Layout(width="auto"))
        self._yes.on_click(functools.partial(self._guarded, self._confirmed))
        self._no.on_click(functools.partial(self._guarded, self._declined))
        self._asked: Callable[[], None] | None = None
        self._question = ipywidgets.HTML()
        self._confirm = ipywidgets.HBox(
            [self._question, self._yes, self._no], layout=ipywidgets.Layout(display="none", align_items="center")
        )
        self._code, self._result, self._extra = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._picture = ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="100%", display="none"))
        self._show_code()
        self._show_last()
        row = ipywidgets.HBox(list(self._buttons.values()), layout=ipywidgets.Layout(flex_flow="row wrap"))
        head = ipywidgets.HTML(_task(exercise) + _link(exercise))
        # the code last: it is long, and buttons and verdict belong on one screen
        super().__init__([head, row, self._confirm, self._result, self._picture, self._extra, self._code])
        self.add_class("course-exercise")

    def check(self) -> Verdict:
        """Grade the learner's file as it is on disk, show the verdict and remember it."""
        self._clear()
        self._result.value = f'<div role="status" style="{_BOX}">{_SPINNER}checking {self.exercise.id} ...</div>'
        try:
            self.verdict = check(self.exercise)
        except BaseException:
            self._show_last()  # nothing is being checked any more, and what was said before still holds
            raise
        self._show_code()
        self._result.value = _verdict(self.verdict, self.exercise)
        progress.note_verdict(self.verdict)  # last: a full disk then costs the record, not the verdict
        return self.verdict

    def _hint(self) -> None:
        self._clear()
        count = progress.note_hint(self.exercise.id, len(self.exercise.hints))
        hints = "".join(
            f"<p style='margin: 2px 0'><b>Hint {number} of {len(self.exercise.hints)}.</b> {_inline(text)}</p>"
            for number, text in enumerate(self.exercise.hints[:count], start=1)
        )
        self._extra.value = f'<div role="status" style="{_BOX}">{hints}</div>'

    def _show_comparison(self) -> None:
        self._clear()
        self._extra.value = f'<div role="status" style="{_BOX}">{_SPINNER}running {self.exercise.id} ...</div>'
        sentence, picture = compare(self.exercise)
        self._show_code()
        alt = f"<br><small>{html.escape(picture.alt)}</small>" if picture else ""
        self._extra.value = f'<div role="status" style="{_BOX}">{html.escape(sentence)}{alt}</div>'
        if picture:
            self._picture.value = picture.png
            self._picture.layout.display = ""

    def _solution(self) -> None:
        if progress.record(self.exercise.id).passed:
            self._show_solution()
        else:
            self._ask(f"{self.exercise.id} is not passed yet. Show the solution all the same?", self._show_solution)

    def _show_solution(self) -> None:
        self._clear()
        progress.note_solution_seen(self.exercise.id)
        self._extra.value = f'<details open style="{_BOX}"><summary>The course\'s solution</summary>{_coloured(texts.read_solution(self.exercise))}</details>'

    def _ask_reset(self) -> None:
        if workspace.has_work(self.exercise):
            self._ask("Start over? Your version is copied to .course/kept/ first.", self._reset)
        else:
            self._reset()

    def _reset(self) -> None:
        self._clear()
        copy = workspace.reset(self.exercise)
        progress.note_reset(self.exercise.id)
        self.verdict = None
        self._show_code()
        self._show_last()
        kept = f" Your version is kept as {html.escape(paths.shown(copy))}." if copy else ""
        self._extra.value = f'<div role="status" style="{_BOX}">The file is as the course wrote it.{kept} Reload it in the editor if it is open there.</div>'

    def _ask(self, question: str, action: Callable[[], None]) -> None:
        self._clear()
        self._asked = action
        self._question.value = f'<span role="alert">{html.escape(question)}</span>'
        self._confirm.layout.display = ""

    def _confirmed(self) -> None:
        action = self._asked
        self._clear()
        if action:
            action()

    def _declined(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._asked = None
        self._confirm.layout.display = "none"
        self._picture.layout.display = "none"
        self._extra.value = ""

    def _guarded(self, action: Callable[[], Any], _button: ipywidgets.Button) -> None:
        """Run a button's action with the buttons off; an exception in a callback would otherwise be seen by nobody."""
        controls = [*self._buttons.values(), self._yes, self._no]
        for button in controls:
            button.disabled = True
        try:
            action()
        except (CourseError, OSError) as problem:
            self._extra.value = (
                f'<div role="alert" style="{_BOX}">{html.escape(str(problem))} Nothing of yours was changed.</div>'
            )
        except Exception as fault:
            where = traceback.extract_tb(fault.__traceback__)[-1]
            words = f"{type(fault).__name__}: {fault} ({where.name}, line {where.lineno})"
            self._extra.value = f'<div role="alert" style="{_BOX}">The course itself failed: {html.escape(words)}. Run `course doctor`, and report these words.</div>'
        finally:
            for button in controls:
                button.disabled = False

    def _show_code(self) -> None:
        path = texts.find_file(self.exercise)
        try:
            text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")
        except Unreadable as unreadable:
            missing = not (path.exists() or path.is_symlink())
            words = f"There is no {paths.shown(path)}. Reset writes it anew." if missing else str(unreadable)
            self._code.value = f'<div style="{_BOX}">{html.escape(words)}</div>'
        else:
            first = _first_line_of_code(text)
            shown = _coloured("\n".join(make_visible(text).split("\n")[first - 1 :]), first)
            self._code.value = f'<details open style="{_BOX}"><summary>Your code, from line {first} of {html.escape(path.name)}</summary>{shown}</details>'

    def _show_last(self) -> None:
        last = progress.record(self.exercise.id).last
        if not last:
            self._result.value = f'<div role="status" style="{_BOX}">Not checked yet.</div>'
            return
        try:
            self._result.value = "<small>The last verdict:</small>" + _verdict(from_dict(last), self.exercise)
        except (
            KeyError,
            TypeError,
            ValueError,
        ):  # written by another version of the course; the next check replaces it
            self._result.value = f'<div role="status" style="{_BOX}">The last verdict is from another version of the course. Check again.</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **kwargs: Any) -> dict[str, Any]:
        still = _task(self.exercise) + (
            f'<div style="{_BOX}">Run this cell for the panel with Check, Hint, Compare, Solution and Reset. '
            f"In a terminal: <code>course check {self.exercise.id}</code>. Your file: <code>exercises/{self.exercise.file}.py</code>.</div>"
        )
        live = super()._repr_mimebundle_(**kwargs) or {}
        text = f"Exercise {self.exercise.id}: {self.exercise.title}. In a terminal: course check {self.exercise.id}"
        return {"text/html": still, "text/plain": text} | {kind: data for kind, data in live.items() if kind == VIEW}


_TIPS = {
    "Check": "Grade your file as it is saved",
    "Hint": "One more hint; there are three, and none counts against you",
    "Compare": "Your outputs against the right ones, element by element",
    "Solution": "The course's solution, after a pass or when you confirm",
    "Reset": "Start over; your version is kept aside",
}


def _task(exercise: Exercise) -> str:
    """Title, effort and the task: the solution's own docstring, which the exercise file carries too."""
    docstring = ast.get_docstring(ast.parse(texts.read_solution(exercise))) or ""
    paragraphs = docstring.split("\n\n")[1:-1]  # the first repeats the title, the last says how to check
    body = "".join(
        f"<pre style='margin: 4px 0 4px 1em; white-space: pre; overflow: auto'>{html.escape(p)}</pre>"
        if p.startswith("    ")
        else f"<p style='margin: 4px 0'>{_inline(' '.join(p.split()))}</p>"
        for p in paragraphs
    )
    effort = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    return (
        f'<div style="{_BOX}; border-left: 5px solid #0072B2"><b>Exercise {exercise.id}: {html.escape(exercise.title)}</b> '
        f'<span title="difficulty {exercise.difficulty} of 5">{effort}</span> about {exercise.minutes} minutes<br>'
        f"<i>{html.escape(exercise.objective)}</i>{body}</div>"
    )


def _link(exercise: Exercise) -> str:
    """A link that opens the file in a split beside the notebook; JupyterLab's command linker reads the attributes."""
    path = texts.find_file(exercise)
    relative = _in_server(path)
    if relative is None:
        return f'<div style="{_BOX}">Your file: <code>{html.escape(str(path))}</code></div>'
    return (
        f'<div style="{_BOX}">{_opener(relative, f"Open {relative} beside this notebook")}, '
        "fill in the parts marked YOUR CODE, save, then press Check.</div>"
    )


def _opener(relative: str, words: str) -> str:
    arguments = html.escape(json.dumps({"path": relative, "options": {"mode": "split-right"}}))
    return (
        '<a href="#" role="button" style="color: #0B5FA5; text-decoration: underline" '
        f'data-commandlinker-command="docmanager:open" data-commandlinker-args="{arguments}">{html.escape(words)}</a>'
    )


def _in_server(path: Path) -> str | None:
    """The path as JupyterLab knows it; None if it serves another folder."""
    root = _server_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


@functools.cache
def _server_root() -> Path:
    """The folder that JupyterLab serves: that of the server which started this kernel, else the checkout (as `make lab` does it)."""
    try:
        from jupyter_server.serverapp import list_running_servers
    except ImportError:  # a hosted notebook whose kernel lives apart from its server
        return paths.ROOT
    for server in list_running_servers():
        if server.get("pid") == os.getppid():
            return Path(server["root_dir"]).resolve()
    return paths.ROOT


def _first_line_of_code(text: str) -> int:
    """The line after the module's docstring and blank lines: the panel shows the task already."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 1
    if len(body) > 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        decorators = [d.lineno for d in getattr(body[1], "decorator_list", [])]
        return min([body[1].lineno, *decorators])
    return 1


def _coloured(code: str, first: int = 1) -> str:
    formatter = HtmlFormatter(
        noclasses=True,
        style="friendly",
        linenos="inline",
        linenostart=first,
        nobackground=True,
        cssclass="course-code",  # JupyterLab's dark theme paints pygments' own class
        prestyles=f"line-height: 1.35; margin: 4px 0; white-space: pre; background: {style.PANEL}; color: {style.INK}",
    )
    return f'<div style="overflow: auto; max-height: 30em; color: {style.INK}">{highlight(code, PythonLexer(), formatter)}</div>'


def _verdict(verdict: Verdict, exercise: Exercise) -> str:
    told = make_report(verdict, exercise)
    edge = _EDGES[verdict.status]
    cause = f"<b>{_inline(told.cause)}</b>" if verdict.headline else _inline(told.cause)
    parts = [
        f'<b style="color: {edge}">{html.escape(told.headline)}</b>',
        f"<p style='{_APART}'>{cause}</p>",
        _finding(told),
    ]
    parts += [
        _quotation(told, edge),
        *(f"<p style='{_APART}'>{_inline(text)}</p>" for text in (told.question, told.common) if text),
    ]
    if told.printed:
        who = "grader" if verdict.status == GRADER_FAULT else "kernel" if exercise.kind == "kernel" else "function"
        parts.append(
            f"<details><summary>What the {who} printed</summary><pre style='{_CODE}'>{html.escape(told.printed)}</pre></details>"
        )
    if verdict.cases:
        rows = "".join(
            f"<tr><td>{SIGNS.get(c.status, '–')} {html.escape(c.status)}</td><td>{html.escape(c.name)}</td>"
            f"<td style='text-align: right'>{'' if c.error is None else f'{c.error:.3g} x'}</td><td style='text-align: left'>{html.escape(c.detail)}</td></tr>"
            for c in verdict.cases
        )
        head = "<tr><th></th><th style='text-align: left'>case</th><th>error / allowed</th><th style='text-align: left'>what is special</th></tr>"
        parts.append(
            f"<details><summary>{len(verdict.cases)} cases</summary><table style='border-spacing: 8px 2px'>{head}{rows}</table></details>"
        )
    if told.debrief:
        parts.append(f"<p style='{_APART}'><b>What you avoided.</b> {_inline(told.debrief)}</p>")
        parts.append(f"<p style='{_APART}'><b>Further.</b> {_inline(told.further)}</p>")
    parts.append(f"<small>{html.escape(told.footer)}</small>")
    return f'<div role="status" aria-live="polite" class="course-verdict" style="{_BOX}; border-left: 5px solid {edge}">{"".join(parts)}</div>'


def _finding(told: Report) -> str:
    """The first failing case, with the numbers side by side."""
    rows = "".join(
        f"<tr><td style='text-align: left'>{html.escape(name)}</td><td style='text-align: left'><code>{html.escape(value.strip())}</code></td></tr>"
        for name, value in told.numbers
    )
    pieces = [
        f"<div style='{_APART}'>Smallest failing case: {html.escape(told.case)}</div>" if told.case else "",
        f"<table style='border-spacing: 8px 2px; margin: 0 0 0 1em'>{rows}</table>" if rows else "",
        f"<div style='margin: 4px 0 4px 1em'>{_inline(told.words)}</div>" if told.words else "",
    ]
    return "".join(pieces)


def _quotation(told: Report, colour: str) -> str:
    """The line of the learner's file, with carets below it; the file's name opens it beside the notebook."""
    if told.place is None:
        return ""
    shown, name = quote_line(told.place), f"{told.file}:{told.place.line}"
    relative = _in_server(paths.located(told.place.file))
    link = _opener(relative, name) if relative else f"<code>{html.escape(name)}</code>"
    before, marked, after = (
        shown.source[: shown.start],
        shown.source[shown.start : shown.end],
        shown.source[shown.end :],
    )
    # underlined, too: a browser's wide characters are seldom exactly two columns
    line = (
        f"{html.escape(before)}<u style='text-decoration-color: {colour}'>{html.escape(marked)}</u>{html.escape(after)}"
    )
    below = (
        f"\n{shown.below}{shown.carets} <b style='color: {colour}'>{html.escape(shown.label)}</b>"
        if shown.carets
        else ""
    )
    return f"<div style='{_APART}'>{link}<pre style='{_CODE}'>{shown.gutter}{line}{below}</pre></div>"


def _inline(text: str) -> str:
    """Escaped text with `code` set as code."""
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))
