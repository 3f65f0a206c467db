"""``course hunt``: a kernel with one thing wrong, hunted line by line in a terminal, or from lines on standard input."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table as Grid
from rich.text import Text

from course_lib import catalog
from course_lib.base import background
from course_lib.base.errors import CourseError
from course_lib.cli.terminal import console, say, show
from course_lib.grading.public import warm_steps
from course_lib.hunt import draw, game, session
from course_lib.hunt.asking import Answer, arrange
from course_lib.hunt.collection import read_hunts
from course_lib.hunt.probe import CaseOptions
from course_lib.hunt.session import Session, Told
from course_lib.learner import progress

WON, NOT_WON, NONE_WAITS = 0, 1, 2
_LOOKS = {"input": "dim", "output": "", "expected": "cyan"}
_COMMANDS = (
    ("N=5 mean=3", "run the kernel on this input; what you do not name stays as it was"),
    ("expected", f"show what is expected on the last input (costs {game.EXPECTED})"),
    ("wrong", f"claim that the kernel is wrong on the last input (costs {game.WRONG} if it is not)"),
    ("code", f"show the code (costs {game.CODE} in a blind hunt)"),
    ("line 12", f"name the line (costs {game.WRONG} if it is another)"),
    ("questions", "list what was asked so far"),
    ("give up", "end the hunt, and see the answer"),
    ("quit", "leave; `course hunt` goes on where you left"),
)


def hunt(exercise_id: str | None, *, seen: bool, daily: bool, give_up: bool, listing: bool, confirmed: bool) -> int:
    if listing:
        return _list(exercise_id)
    if daily and (exercise_id or seen):
        raise CourseError("the daily hunt is the same for everybody: it takes neither --exercise nor --seen.")
    play = _begin_daily(confirmed) if daily else _begin(exercise_id, seen)
    if play is None:
        return NONE_WAITS if not daily else NOT_WON
    if give_up and not play.game.ended:
        _tell(play.give_up())
    _open(play)
    if not play.game.ended:
        _play(play)
    if play.game.ended:
        _close(play)
    elif not sys.stdin.isatty():
        show(Text("The hunt goes on: `course hunt` in a terminal, or commands on standard input, one a line.", "dim"))
    return WON if play.game.won else NOT_WON


def _begin(exercise_id: str | None, seen: bool) -> Session | None:
    exercise = catalog.get(exercise_id).id if exercise_id else None
    play = session.resume_or_draw(game.SEEN if seen else None, exercise)
    if play is None:
        on = f" on {exercise}" if exercise else ""
        show(
            f"No hunt{on} waits: you have ended all that are open. Each kernel exercise that you pass opens more. `course hunt --daily` has one for today."
        )
    elif words := session.explain_level(play, game.SEEN if seen else None):
        say(f"course: {words}")
    return play


def _begin_daily(confirmed: bool) -> Session | None:
    warning = session.warn_of_daily()
    if warning and not confirmed:
        say(f"course: {warning} `course hunt --daily --yes` plays it all the same.")
        return None
    return session.begin_daily()


def _list(exercise_id: str | None) -> int:
    plays, passed = progress.read_hunts(), draw.find_passed()
    wanted = catalog.get(exercise_id).id if exercise_id else None
    ended = {record.hunt: game.replay(record.level, record.moves) for record in plays.values() if draw.is_ended(record)}
    begun = {record.hunt for record in plays.values()}
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in ("hunt", "exercise", "level", "state"):
        grid.add_column(column, no_wrap=column != "exercise")
    there = [one for one in draw.list_open(passed) if wanted in (None, one.exercise_id)]
    for one in there:
        played = ended.get(one.id)
        state = f"won, paid {played.score}" if played and played.won else "given up" if played else "begun" if one.id in begun else "waits"
        grid.add_row(one.id, escape(one.exercise.title), "●" * one.level + "○" * (3 - one.level), state)
    if there:
        show(grid)
        print()
    closed = sum(not one.daily for one in read_hunts().values()) - len(draw.list_open(passed))
    show(f"{draw.say_waiting(len(draw.list_waiting(plays, passed)))} {closed} more open as you pass their exercises.")
    return WON


def _open(play: Session) -> None:
    show(Text(play.title, "bold"))
    if play.game.ended:
        return
    show(Text(play.aim, "dim"))
    show(_prose(play.task))
    print()
    if play.game.questions:
        _list_questions(play)
    if play.game.code_is_open:
        _show_code(play)
    options = play.options
    begin = "The last input was" if play.game.questions else "Begin with"
    show(_prose(f"{begin} `{options.write(play.last)}`: Enter runs it as it is, `N=5` with that changed."))
    _describe_input(options)
    if len(progress.read_hunts()) > 1:
        show(_prose("`help` lists the commands."))
    else:
        show(_prose(session.RULES))
        _help()


def _describe_input(options: CaseOptions) -> None:
    choices = {
        "dtype": ", ".join(options.dtypes),
        "values": ", ".join(options.values),
        "layout": ", ".join(options.layouts),
        "weights": "plain (w is 1 and b is 0), drawn",
    }
    several = [f"{name}: {choices[name]}" for name in options.names if "," in choices.get(name, "")]
    numbers = ", ".join(name for name in options.names if name not in choices)
    for line in (f"numbers: {numbers}", *several):
        show(Text(f"  {line}", "dim"))


def _help() -> None:
    grid = Grid.grid(padding=(0, 2))
    for command, what in _COMMANDS:
        grid.add_row(f"  [bold]{command}[/bold]", what)
    print()
    show(grid)
    print()


def _close(play: Session) -> None:
    print()
    show(Text("✓ The hunt is won.", "bold green") if play.game.won else Text("The hunt has ended.", "bold"))
    if not play.game.won:
        _show_code(play)
    for paragraph in (play.write_score(), *play.debrief()):
        print()
        show(_prose(paragraph))
    print()
    show(Text(draw.say_waiting(draw.count_waiting()), "dim"))


def _play(play: Session) -> None:
    """Read lines and obey them until the hunt or the input ends."""
    background.start(lambda: warm_steps("kernel", "cpu"))  # in the background, while the learner reads
    for line in _read_lines():
        try:
            if _obey(play, line):
                return
        except CourseError as problem:
            show(Text(str(problem), "yellow"))
        if play.game.ended:
            return


def _read_lines() -> Iterator[str]:
    asked = sys.stdin.isatty()
    if asked:
        import readline  # noqa: F401 - gives input() a history and arrows
    while True:
        if asked:
            try:
                yield input("hunt> ").strip()
            except EOFError:
                show("")
                return
        else:
            line = sys.stdin.readline()
            if not line:
                return
            if line.strip():
                show(Text(f"hunt> {line.strip()}", "dim"))
                yield line.strip()


def _obey(play: Session, line: str) -> bool:
    """Do what one line says; return True if the learner leaves."""
    word = line.lower()
    if word in ("quit", "exit", "q"):
        return True
    if word in ("help", "?", "h"):
        show(_prose(session.RULES))
        _describe_input(play.options)
        _help()
    elif word in ("code", "c"):
        _tell(play.show_code())
        _show_code(play)
    elif word in ("questions", "list"):
        _list_questions(play)
    elif word in ("give up", "give-up"):
        _tell(play.give_up())
    elif word in ("expected", "e"):
        _tell(_wait(lambda: play.compare(play.last)), compared=True)
    elif word in ("wrong", "w"):
        before = play.game.exposing
        _tell(_wait(lambda: play.claim(play.last)), with_answer=False)
        if before is None and play.game.exposing is not None and not play.game.ended:
            _show_code(play)
            show(_prose(play.task))
    elif word.removeprefix("line").strip().isdigit():
        _tell(play.name_line(int(word.removeprefix("line"))))
    elif word in ("", "ask") or "=" in word:
        probe = play.options.parse(line if "=" in word else "", play.last)
        _tell(_wait(lambda: play.ask(probe)))
    else:
        raise CourseError(f"{line!r} is no command. `help` lists them.")
    return False


def _wait(move: Callable[[], Told]) -> Told:
    with console().status("running the kernel ...") if sys.stdout.isatty() else contextlib.nullcontext():
        return move()


def _tell(told: Told, *, compared: bool = False, with_answer: bool = True) -> None:
    if told.answer is not None and with_answer:
        _draw_answer(told.answer, compared)
    if told.words:
        show(Text(told.words, {True: "green", False: "red", None: ""}[told.good]))


def _draw_answer(answer: Answer, compared: bool) -> None:
    for grid in arrange(answer, compared):
        drawn = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
        drawn.add_column("", min_width=8, no_wrap=True)
        for head in grid.columns:
            drawn.add_column(head, justify="right", min_width=7, no_wrap=True)
        for row in grid.rows:
            look = _LOOKS[row.kind]
            cells = (Text(f"{c.text}*" if c.look else c.text, "bold red" if c.look else look) for c in row.cells)
            drawn.add_row(Text(row.name, look), *cells)
        show(drawn)
    for note in answer.notes:
        show(Text(note, "yellow"))


def _list_questions(play: Session) -> None:
    for number, question in enumerate(play.game.questions, start=1):
        known = {True: ": shows the mistake", False: ": as expected", None: ""}[question.exposes]
        show(Text(f"  {number}. {play.options.write(question.probe)}{known}"))
    show(Text(f"Paid so far: {play.game.score}.", "dim"))


def _show_code(play: Session) -> None:
    shown = Syntax(play.hunt.text, "python", line_numbers=True, word_wrap=True, theme="ansi_dark", background_color="default")
    show(
        shown if console().is_terminal else Text("\n".join(f"{n:3} {line}" for n, line in enumerate(play.hunt.text.splitlines(), start=1)))
    )


def _prose(text: str) -> Text:
    prose = Text(text)
    prose.highlight_regex(r"`[^`\n]+`", "cyan")
    return prose
