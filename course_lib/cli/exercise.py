"""Run the commands about one exercise: check, hint, solution, reset."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise, texts
from course_lib.cli import status
from course_lib.cli.terminal import console, say, show
from course_lib.cli.verdict_view import verdict_view
from course_lib.grading.verdict import Verdict
from course_lib.learner import progress, workspace
from course_lib.learner.following import Followup, take_verdict

if TYPE_CHECKING:
    from rich.syntax import Syntax


def check(
    exercise_id: str | None,
    file: Path | None,
    secret_file: Path | None,
    as_json: bool,
    require_tier: str | None = None,
) -> int:
    """Grade, remember and print; returns the verdict's exit code. ``require_tier``: "namespaces",
    "landlock", or None.

    Raises: CourseError if there is no such exercise, or the secret cannot be used; OSError if its
    file cannot be read.
    """
    exercise = status.choose(exercise_id)
    # progress is the learner's: its last verdict is one that Check gives again, and its pass one
    # that Check gave
    is_learners_file = file is None and secret_file is None
    busy = console().status(
        _("checking {id} {title} ...").format(id=exercise.id, title=escape(exercise.title))
    )

    # This line is for a person at a terminal, who waits. Elsewhere the verdict is enough.
    at_terminal = not as_json and busy.console.is_terminal

    def tell(words: str) -> None:
        if not at_terminal:
            return
        busy.update(_("checking {id}: the other cases still run ...").format(id=exercise.id))
        busy.console.print(Text(words))

    with contextlib.nullcontext() if as_json else busy:
        verdict = _grade(exercise, file, secret_file, require_tier, tell)
        # before anything is printed: whoever ends the command on seeing the verdict keeps it
        followup = take_verdict(verdict) if is_learners_file else Followup()
    if not as_json:
        show_verdict(verdict, exercise, followup)
        return verdict.exit_code
    if followup.complaint:
        say(f"course: {followup.complaint}")
    print(verdict.as_json())
    return verdict.exit_code


def show_verdict(verdict: Verdict, exercise: Exercise, followup: Followup) -> None:
    """Print a verdict, and after a pass the exercise that comes next."""
    if followup.complaint:
        say(f"course: {followup.complaint}")
    show(verdict_view(verdict, exercise))
    if followup.upcoming:
        show(status.next_line(followup.upcoming))
    if followup.all_passed:
        show(_("That was the last one: you have passed every exercise."))


def next_hint(exercise: Exercise) -> str:
    """Take one more hint, and return it with those taken before, in rich's markup."""
    return hints(exercise, progress.note_hint(exercise.id, len(exercise.hints)))


def hints(exercise: Exercise, count: int) -> str:
    """Return the hints taken so far, in rich's markup."""
    head, total = _("Hint {number} of {total}."), len(exercise.hints)
    numbered = enumerate(exercise.hints[:count], start=1)
    return "\n\n".join(
        f"[bold]{head.format(number=number, total=total)}[/bold] {escape(text)}"
        for number, text in numbered
    )


def hint(exercise_id: str | None) -> int:
    exercise = status.choose(exercise_id)
    hints = next_hint(exercise)
    if exercise_id is None:
        show(f"{exercise.id} {escape(exercise.title)}")
    show(hints)
    if progress.record(exercise.id).hints == len(exercise.hints):
        ours = (
            ""
            if paths.is_release()
            else _(" `course solution {id}` shows the course's solution.").format(id=exercise.id)
        )
        words = _(
            "There are no more hints. Compare, in the lesson's panel, sets your outputs beside the"
            " right ones.{ours}"
        )
        show("\n" + words.format(ours=ours))
    return 0


def solution(exercise_id: str, confirmed: bool) -> int:
    """Print the solution: numbered lines, wrapped, in a terminal; elsewhere the text alone."""
    exercise = catalog.get(exercise_id)
    texts.require_solution(exercise)
    if not (confirmed or progress.record(exercise.id).passed or _confirm(exercise)):
        return 1
    text = texts.make_plain_solution(exercise)
    progress.note_solution_seen(exercise.id)
    if sys.stdout.isatty():
        show(highlight(text))
    else:
        print(text, end="")
    return 0


def highlight(text: str) -> Syntax:
    """Return source code in colours, with numbered lines; a line that is too long for the terminal
    is wrapped."""
    from rich.syntax import Syntax  # imports a lexer that only this function needs

    return Syntax(text, "python", line_numbers=True, word_wrap=True, theme="ansi_dark")


def reset(exercise_id: str) -> int:
    exercise = catalog.get(exercise_id)
    copy = workspace.reset(exercise)
    progress.note_reset(exercise.id)
    copy_note = (
        _("Your version is kept as {file}.").format(file=paths.shown(copy))
        if copy
        else _("There was no work of yours in it.")
    )
    show(
        escape(
            _("{file} is as the course wrote it. {kept}").format(
                file=paths.shown(texts.find_file(exercise)), kept=copy_note
            )
        )
    )
    return 0


def _confirm(exercise: Exercise) -> bool:
    if not sys.stdin.isatty():
        words = _(
            "{id} is not passed yet. `course solution {id} --yes` shows the solution all the same."
        )
        say(f"course: {words.format(id=exercise.id)}")
        return False
    # not typer.confirm: it writes a space to standard output, which may be the file that the
    # solution goes to
    words = _("{id} is not passed yet. Show the solution all the same?")
    sys.stderr.write(f"{words.format(id=exercise.id)} [y/N]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _grade(
    exercise: Exercise,
    file: Path | None,
    secret_file: Path | None,
    require_tier: str | None,
    tell_first_failure: Callable[[str], None] | None,
) -> Verdict:
    # imported here, because the grader imports NumPy, which the other commands do not need
    from course_lib.grading.cases.hidden import read_secret
    from course_lib.grading.check import check as grade
    from course_lib.sandbox.isolation import LANDLOCK, NAMESPACES

    # The secret is read from a file, because every process of the machine, a submission too, can
    # read a command line.
    tier = {None: None, "namespaces": NAMESPACES, "landlock": LANDLOCK}[require_tier]
    secret = read_secret(secret_file) if secret_file else None
    return grade(
        exercise, file, secret=secret, required_tier=tier, tell_first_failure=tell_first_failure
    )
