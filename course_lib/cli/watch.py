"""`course watch`: checks an exercise each time it is saved. In a terminal it fills the screen and
takes keys."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from rich.cells import set_cell_size
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.words import list_words
from course_lib.catalog import Exercise, texts
from course_lib.cli import screen, status
from course_lib.cli.exercise import highlight, hints, next_hint, show_verdict
from course_lib.cli.screen import Screen, render
from course_lib.cli.terminal import say, show
from course_lib.cli.verdict_view import verdict_view
from course_lib.grading.report import describe_status
from course_lib.grading.verdict import Verdict
from course_lib.learner import progress
from course_lib.learner.following import Followup, find_next_exercise, take_verdict
from course_lib.learner.progress import ExerciseProgress

TICK = 0.1  # seconds between two looks at the files
_SPINNER = "|/-\\"


def watch(exercise_id: str | None) -> int:
    """Watch until it is ended: by a key on a screen, by Ctrl-C elsewhere.

    Args:
        exercise_id: the exercise to begin with; None is the next one, or, without a terminal, all
            of them.

    Raises: CourseError if there is no such exercise; KeyboardInterrupt.
    """
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        _watch_on_screen(status.choose(exercise_id))
    else:
        _watch_in_lines(
            [catalog.get(exercise_id)] if exercise_id else list(catalog.exercises().values())
        )
    return 0


def _explain_keys() -> str:
    words = _("next/hint/list/solution/run again/quit").split("/")
    return "  ".join(
        f"[bold]{key}[/bold] {description}"
        for key, description in zip("nhlsrq", words, strict=True)
    )


class Saves:
    """Which files were saved, deleted or locked away, by looking at their times. That works in
    network and shared folders, too, where no events come."""

    def __init__(self, exercises: list[Exercise]) -> None:
        self._files = {texts.find_file(exercise): exercise for exercise in exercises}
        self._seen = {file: _stamp(file) for file in self._files}
        self._settling: dict[Path, tuple | None] = {}
        self._looked = 0.0

    def poll(self) -> list[Exercise]:
        """Return the exercises saved since the last look, one per TICK. A file counts once two
        looks find it the same, because editors write in pieces."""
        if time.monotonic() < self._looked + TICK:
            return []
        self._looked = time.monotonic()
        saved = []
        for file, exercise in self._files.items():
            now = _stamp(file)
            if now == self._seen[file]:
                self._settling.pop(file, None)
            elif file in self._settling and now == self._settling[file]:
                self._seen[file] = self._settling.pop(file)
                saved.append(exercise)
            else:
                self._settling[file] = now
        return saved


def _stamp(path: Path) -> tuple | None:
    """Return a value that differs after every save and every change of permissions; None if there
    is no such file."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ctime_ns, facts.st_size, facts.st_ino


class Checker:
    """One check at a time, in a thread, so that keys are answered meanwhile."""

    def __init__(self) -> None:
        self.exercise: Exercise | None = None  # the exercise that is being checked
        self._started = 0.0
        self._outcome: list[Verdict | BaseException] = []
        self._told: list[str] = []  # the first wrong case of the running check

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def start(self, exercise: Exercise) -> None:
        self.exercise, self._started, self._outcome, self._told = exercise, time.monotonic(), [], []
        # a daemon thread, so that quitting does not wait for a verdict
        threading.Thread(
            target=self._check, args=(exercise, self._outcome, self._told), daemon=True
        ).start()

    @property
    def first_failure(self) -> str:
        """Return a line about the first wrong case while other cases still run; empty if no case is
        wrong yet."""
        return "".join(self._told)

    def take_result(self) -> tuple[Exercise, Verdict | CourseError] | None:
        """Return the result of a check that has ended since the last call: a verdict, or why there
        is none.

        Raises: what the check raised, if that is not meant for people.
        """
        if self.exercise is None or not self._outcome:
            return None
        exercise, self.exercise = self.exercise, None
        (outcome,) = self._outcome
        if isinstance(outcome, (Verdict, CourseError)):
            return exercise, outcome
        raise outcome

    @staticmethod
    def _check(
        exercise: Exercise, outcome: list[Verdict | BaseException], sentences: list[str]
    ) -> None:
        try:
            # imports NumPy, so it is imported after the screen has appeared
            from course_lib.grading.check import check

            outcome.append(check(exercise, tell_first_failure=sentences.append))
        except BaseException as error:
            outcome.append(
                error
            )  # raised again by take_result(), in the thread that has the terminal


class WatchSession:
    """The state of the screen, which keys, saves and verdicts change. Only a key moves it to
    another exercise."""

    def __init__(self, exercise: Exercise) -> None:
        self.records: dict[str, ExerciseProgress] = progress.read()
        self.ended = False
        self.changes = 0  # increases with every change that the screen may have to show
        self.message = ""
        self._skips = False  # the last key was an `n` that was refused: another one skips
        self._asks = False  # whether to show the solution
        self._typed: str | None = None  # the ID typed so far while the list is shown
        self._selected = 0
        self.go_to(exercise)

    def go_to(self, exercise: Exercise) -> None:
        self.current = exercise
        self.check_wanted = True
        self._verdict: RenderableType = f"[bold]{_('Task.')}[/bold] {escape(exercise.objective)}"
        self._show(self._verdict)

    # ---- what happens

    def note_save(self, exercise: Exercise) -> None:
        self.changes += 1
        if exercise == self.current:
            self.check_wanted = True
        else:
            self.message = _(
                "You saved {id}, which is not the exercise watched here. Press l to go there."
            ).format(id=exercise.id)

    def take_verdict(self, exercise: Exercise, outcome: Verdict | CourseError) -> None:
        """Keep the verdict of a check that has ended, and show it if its exercise is still the one
        watched."""
        self.changes += 1
        followup = take_verdict(outcome) if isinstance(outcome, Verdict) else Followup()
        if not followup.complaint:
            self.records = progress.read()
        if exercise != self.current:
            return
        self._verdict = (
            verdict_view(outcome, exercise)
            if isinstance(outcome, Verdict)
            else escape(str(outcome))
        )
        self._show(self._verdict)
        if followup.upcoming:
            self.message = _("Passed. n goes to {id} {title}.").format(
                id=followup.upcoming.id, title=followup.upcoming.title
            )
        if followup.all_passed:
            self.message = _("Passed. You have passed every exercise.")
        self.message = followup.complaint or self.message

    def press(self, key: str) -> None:
        """Do what a key asks for. What cannot be written becomes the message."""
        self.changes += 1
        try:
            if self._typed is not None:
                self._press_in_list(key)
            elif self._asks:
                self._asks, self.message = False, ""
                if key in ("y", "Y"):
                    self._show_solution()
            else:
                self._press(key)
        except OSError as error:
            where = f": {paths.shown(Path(error.filename))}" if error.filename else ""
            self.message = f"{error.strerror or error}{where}"

    def _press(self, key: str) -> None:
        skips, self._skips = self._skips, False
        if key in (screen.DOWN, " ", screen.PAGE_DOWN):
            self.scroll += 1 if key == screen.DOWN else 10
            return
        if key in (screen.UP, "b", screen.PAGE_UP):
            self.scroll = max(0, self.scroll - (1 if key == screen.UP else 10))
            return
        self.message = ""
        passed = self.current.id in self.records and self.records[self.current.id].passed
        if key == "q":
            self.ended = True
        elif key == "n":
            self._next(passed, skips)
        elif key == "h":
            self._hint()
        elif key == "l":
            self._typed, self._selected = "", list(catalog.exercises().values()).index(self.current)
        elif key == "s":
            self._ask_for_solution(passed)
        elif key == "r":
            self.check_wanted = True
        elif key == screen.ESCAPE:
            self._show(self._verdict)
        elif key:
            self.message = _("{key} does nothing here.").format(key=repr(key))

    def _next(self, passed: bool, skips: bool) -> None:
        upcoming = find_next_exercise(self.records, None if passed else self.current)
        if upcoming is None:
            self.message = _("You have passed every exercise. l goes to any of them.")
        elif upcoming == self.current:
            self.message = _("{id} is the only one left.").format(id=upcoming.id)
        elif passed or skips:
            self.go_to(upcoming)
        else:
            now = status.state(self.records.get(self.current.id))
            words = _(
                "{id} is not passed yet ({state}). n once more skips it, for {next}; h gives a"
                " hint."
            )
            self.message = words.format(
                id=self.current.id, state=describe_status(now), next=upcoming.id
            )
            self._skips = True

    def _hint(self) -> None:
        """Show the hints taken so far. The first hint counts, and so does each further one that is
        taken while they are shown."""
        hints_taken = self.records.get(self.current.id, ExerciseProgress()).hints
        available = len(self.current.hints)
        if not hints_taken or self._hints_shown:
            self._show(next_hint(self.current))
            self.records = progress.read()
            hints_taken = min(hints_taken + 1, available)
        else:
            self._show(hints(self.current, hints_taken))
        more = (
            _("h once more shows hint {number} of {total}.")
            if hints_taken < available
            else _("That was the last hint.")
        )
        self.message = join_sentences(
            more.format(number=hints_taken + 1, total=available), _("Esc goes back to the verdict.")
        )
        self._hints_shown = True

    def _ask_for_solution(self, passed: bool) -> None:
        try:
            texts.require_solution(self.current)
        except CourseError as absent:
            self.message = str(absent)
            return
        if passed:
            self._show_solution()
        else:
            question = _("{id} is not passed yet. Show the solution all the same? y or n")
            self._asks, self.message = True, question.format(id=self.current.id)

    def _show_solution(self) -> None:
        text = texts.make_plain_solution(self.current)
        progress.note_solution_seen(self.current.id)
        self._show(highlight(text), _("Esc goes back to the verdict."))

    def _press_in_list(self, key: str) -> None:
        exercises, typed = list(catalog.exercises().values()), self._typed or ""
        self.message = ""
        if key in (screen.ESCAPE, "l", "q"):
            self._typed = None
        elif key == screen.ENTER:
            self._typed = None
            if exercises[self._selected] != self.current:
                self.go_to(exercises[self._selected])
        elif key in (screen.UP, screen.DOWN):
            self._typed, self._selected = (
                "",
                max(0, min(len(exercises) - 1, self._selected + (1 if key == screen.DOWN else -1))),
            )
        elif key == screen.BACKSPACE:
            self._typed = typed[:-1]
        elif key.isalnum() and len(key) == 1:
            self._type(typed + key.lower(), exercises)

    def _type(self, text: str, exercises: list[Exercise]) -> None:
        index = next(
            (
                n
                for n, e in enumerate(exercises)
                if e.id.startswith(text) or e.id.lstrip("0").startswith(text)
            ),
            None,
        )
        if index is None:
            self._typed = ""
            self.message = _("No exercise begins with {text}.").format(text=repr(text))
        else:
            self._typed, self._selected = text, index

    def _show(self, body: RenderableType, message: str = "") -> None:
        self._body, self.scroll, self.message, self._hints_shown = body, 0, message, False

    # ---- what it looks like

    def lines(self, columns: int, rows: int, checking: str) -> list[list[Segment]]:
        """Return the lines of the screen: header, body, and at the bottom the message and the keys.
        ``checking`` is the sign of a running check."""
        listing = self._typed is not None
        bar = max(10, min(status.BAR_COLUMNS, columns - 20))
        title = (
            f"[bold]{self.current.id} {escape(self.current.title)}[/bold] "
            f" {status.link(self.current)}"
        )
        header = render(
            Group(status.progress_bar(self.records, bar), title, Rule(style="dim")), columns
        )
        idle = "" if checking else f"[dim]{_('Save the file to check it.')}[/dim]"
        status_line = _(". ").join(filter(None, [checking, escape(self.message)]))
        status_line = status_line or (
            _("go to: {typed}").format(typed=self._typed) if listing else idle
        )
        list_keys = _(
            "[bold]↑ ↓[/bold] or an ID choose  [bold]Enter[/bold] go there  [bold]Esc[/bold] back"
        )
        footer = render(
            Group(Rule(style="dim"), status_line, list_keys if listing else _explain_keys()),
            columns,
        )
        space = max(1, rows - len(header) - len(footer))
        body = self._list(columns, space) if listing else self._page(columns, space)
        return header + body + [[]] * (space - len(body)) + footer

    def _page(self, columns: int, space: int) -> list[list[Segment]]:
        lines = render(self._body, columns)
        if len(lines) <= space:
            self.scroll = 0
            return lines
        self.scroll = min(self.scroll, len(lines) - space + 1)
        lines_left = len(lines) - self.scroll - (space - 1)
        more = (
            _("… {left} more line: ↓ or space")
            if lines_left == 1
            else _("… {left} more lines: ↓ or space")
        )
        words = more.format(left=lines_left) if lines_left else _("the end: ↑ or b goes back")
        return (
            lines[self.scroll : self.scroll + space - 1]
            + render(f"[reverse] {words} [/reverse]", columns)[:1]
        )

    def _list(self, columns: int, space: int) -> list[list[Segment]]:
        rows = []
        longest = max(12, min(48, columns - 24))  # of a title: the status behind it stays in view
        for n, exercise in enumerate(catalog.exercises().values()):
            row = status.row(exercise, self.records, marked=exercise == self.current)
            line = (
                f"{row[0]} {row[1]} {set_cell_size(row[status.TITLE], longest)} {row[status.STATE]}"
            )
            text = Text.from_markup(
                line, style="reverse" if n == self._selected else "", overflow="ellipsis"
            )
            text.no_wrap = True
            rows.append(text)
        lines = render(Group(*rows), columns)
        start = max(0, min(self._selected - space // 2, len(lines) - space))
        return lines[start : start + space]


def _watch_on_screen(exercise: Exercise) -> None:
    session = WatchSession(exercise)
    checker = Checker()
    saves = Saves(list(catalog.exercises().values()))
    with Screen() as terminal:
        drawn = None
        while not session.ended:
            for saved in saves.poll():
                session.note_save(saved)
            if ended := checker.take_result():
                session.take_verdict(*ended)
            if session.check_wanted and checker.exercise is None:
                session.check_wanted = False
                checker.start(session.current)
            sign = _sign(checker)
            state = (terminal.taken, terminal.size, sign, session.changes)
            if state != drawn:
                terminal.draw(session.lines(*terminal.size, sign))
                drawn = state
            if key := terminal.read_key(TICK):
                session.press(key)
    passed, total = status.passed_of_all(session.records)
    show(
        _("{passed} of {total} passed. `course watch` goes on from here.").format(
            passed=passed, total=total
        )
    )


def _sign(checker: Checker) -> str:
    """Return the sign of a running check with its seconds; empty if no check runs."""
    if checker.exercise is None:
        return ""
    turn = _SPINNER[int(checker.seconds / TICK) % len(_SPINNER)]
    checking = _("{turn} checking {id}, {seconds} s").format(
        turn=turn, id=checker.exercise.id, seconds=f"{checker.seconds:.0f}"
    )
    return _(". ").join(filter(None, [checking, escape(checker.first_failure)]))


def _watch_in_lines(exercises: list[Exercise]) -> None:
    saves = Saves(exercises)
    words = _("Watching {folder} for {names}. Save a file to check it; Ctrl-C ends.")
    names = list_words(exercise.id for exercise in exercises)
    show(escape(words.format(folder=f"{paths.shown(paths.exercises())}/", names=names)))
    from course_lib.grading.check import check

    while True:
        for exercise in saves.poll():
            try:
                verdict = check(exercise)
            except CourseError as error:  # at the next save the fault of the machine may be gone
                say(f"course: {error}")
                continue
            show_verdict(verdict, exercise, take_verdict(verdict))
        time.sleep(TICK)
