"""``hunt()``: find the mistake in a kernel, in a notebook. ``course hunt`` opens a page with it."""

from __future__ import annotations

import html
import traceback
from collections.abc import Callable
from typing import Any

import ipywidgets

from course_lib import catalog
from course_lib.base import background
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.grading.public import warm_checks
from course_lib.hunt import draw, game, session
from course_lib.hunt.asking import Answer, Cell, InputTable, arrange
from course_lib.hunt.probe import CaseOptions, Probe
from course_lib.hunt.session import Session, Told
from course_lib.learner import progress
from course_lib.lessons.live import VIEW
from course_lib.lessons.panel_page import (
    write_box,
    write_busy,
    write_code,
    write_inline,
    write_markdown,
)
from course_lib.lessons.stylesheets import PANEL_STYLE

# buttons
ASK = "ask"
COMPARE = "compare"
CLAIM = "claim"
BUY = "buy"
NAME = "name"
GIVE_UP = "give up"
NEXT = "next"
PLAY = "play"
_INPUT = "input"  # the fields of an input, among the buttons
_LOOKS = {True: "good", False: "bad", None: "plain"}


def hunt(exercise: str | None = None, *, seen: bool = False, daily: bool = False) -> HuntPanel:
    """Return a panel with the unfinished hunt, or the next one if there is none. Call it in the
    last line of a cell.

    Args:
        exercise: only hunts on this exercise, such as "07a".
        seen: show the code from the beginning.
        daily: play today's hunt, which is the same for all learners.

    Raises: CourseError if there is no such exercise, it has no hunts, or the learner has not passed
    it.
    """
    if daily:
        return HuntPanel(
            session.begin_daily, lambda: session.resume_or_draw(None), offer=session.warn_of_daily()
        )
    exercise_id = catalog.get(exercise).id if exercise else None
    level = game.SEEN if seen else None

    def begin() -> Session | None:
        return session.resume_or_draw(level, exercise_id)

    return HuntPanel(begin, lambda: begin() or session.resume_or_draw(level), level=level)


def offer_hunt(exercise: str) -> HuntPanel:
    """Return a panel that begins a hunt on an exercise when the learner presses its button; before
    a pass it says when the hunt opens.

    Raises: CourseError if there is no such exercise.
    """
    hunted = catalog.get(exercise)
    passed = progress.record(hunted.id).passed
    words = _(
        "**A hunt, if you like.** This {id} ({title}) has one mistake. Find an input that shows it,"
        " then the line: about five minutes.{later}"
    )
    later = (
        ""
        if passed
        else _(" It opens when you have passed {id}. Run this cell again then.").format(
            id=hunted.id
        )
    )
    offer = words.format(id=hunted.id, title=hunted.title, later=later)
    return HuntPanel(
        lambda: session.resume_or_draw(None, hunted.id),
        lambda: session.resume_or_draw(None),
        offer=offer,
        can_begin=passed,
    )


class HuntPanel(ipywidgets.VBox):
    """A live panel that plays one hunt after another. Callbacks never raise: the panel shows every
    error in words."""

    def __init__(
        self,
        begin: Callable[[], Session | None],
        begin_next: Callable[[], Session | None],
        offer: str = "",
        level: str | None = None,
        can_begin: bool = True,
    ) -> None:
        """Take the functions that begin the first hunt and each next one.

        ``offer`` is shown first, and the hunt begins only when the learner presses a button, which
        is there if ``can_begin``. ``level`` is the level that the caller asked for.
        """
        self._begin, self._begin_next, self._level = begin, begin_next, level
        self.session: Session | None = None
        self._fields: dict[str, Any] = {}
        self._head, self._code, self._answer, self._log, self._end = (
            ipywidgets.HTML() for number in range(5)
        )
        actions: dict[str, tuple[Callable[[], None], str, str]] = {
            ASK: (
                lambda: self._tell(self._playing.ask(self._read_probe())),
                _("Ask"),
                _("Run the kernel on this input"),
            ),
            COMPARE: (
                lambda: self._tell(self._playing.compare(self._read_probe()), compared=True),
                _("Show what is expected (costs {cost})").format(cost=game.EXPECTED),
                _("What the right kernel gives on this input"),
            ),
            CLAIM: (
                lambda: self._tell(self._playing.claim(self._read_probe())),
                _("It is wrong here"),
                _("Costs {cost} if it is not").format(cost=game.WRONG),
            ),
            BUY: (
                lambda: self._tell(self._playing.show_code()),
                _("Show the code (costs {cost})").format(cost=game.CODE),
                _("It is free once an input is found"),
            ),
            GIVE_UP: (
                lambda: self._tell(self._playing.give_up()),
                _("Give up"),
                _("End the hunt, and see the answer"),
            ),
            NAME: (
                self._do_line,
                _("This line is wrong"),
                _("Costs {cost} if it is another").format(cost=game.WRONG),
            ),
            NEXT: (self._do_next, _("Next hunt"), _("Another kernel")),
            PLAY: (self._start, _("Begin the hunt"), ""),
        }
        self._buttons = {
            name: _make_button(
                words, self._guard(action), "primary" if name in (ASK, NEXT) else "", tip
            )
            for name, (action, words, tip) in actions.items()
        }
        self._line = ipywidgets.Dropdown(
            description=_("Line"),
            layout=ipywidgets.Layout(width="480px", max_width="100%"),
            style={"description_width": "initial"},
        )
        self._input = ipywidgets.HBox(layout=_wrap())
        self._naming = ipywidgets.HBox([self._line, self._buttons[NAME]], layout=_wrap())
        self._controls: dict[str, Any] = {**self._buttons, NAME: self._naming, _INPUT: self._input}
        row = ipywidgets.HBox(
            [self._buttons[name] for name in (ASK, COMPARE, CLAIM, BUY, GIVE_UP, NEXT, PLAY)],
            layout=_wrap(),
        )
        super().__init__(
            [
                self._head,
                self._input,
                row,
                self._answer,
                self._end,
                self._naming,
                self._code,
                self._log,
            ]
        )
        self.add_class("course-exercise")
        if offer:
            self._show()
            self._head.value = PANEL_STYLE + write_box(
                write_markdown(offer[0].upper() + offer[1:]), "open"
            )
            self._buttons[PLAY].layout.display = "" if can_begin else "none"
        else:
            self._start()

    def _start(self) -> None:
        self.session = self._begin()
        self._answer.value = self._end.value = ""
        if self.session is None:
            self._head.value = PANEL_STYLE + write_box(
                _(
                    "<b>No hunt waits.</b> You have ended all that are open. Each kernel exercise"
                    " that you pass opens more; <code>hunt(daily=True)</code> has one for today."
                )
            )
        else:
            background.start(lambda: warm_checks("kernel", "cpu"))  # while the learner reads
            self._make_fields(self.session)
            if words := session.explain_level(self.session, self._level):
                self._answer.value = write_box(write_inline(words[0].upper() + words[1:]), "open")
        self._show()

    def _make_fields(self, play: Session) -> None:
        options, last_probe = play.options, play.last
        choices = {
            "dtype": options.dtypes,
            "values": options.values,
            "layout": options.layouts,
            "weights": ("plain", "drawn"),
        }
        self._fields = {
            name: _make_field(name, getattr(last_probe, name), choices.get(name), options)
            for name in options.names
        }
        self._input.children = tuple(self._fields.values())

    def _read_probe(self) -> Probe:
        options = self._playing.options
        words = {name: field.value for name, field in self._fields.items()}
        return options.check(Probe(**vars(options.first()) | words))

    def _show(self) -> None:
        play = self.session
        usable = _find_controls(play)
        for name, box in self._controls.items():
            box.layout.display = "" if name in usable else "none"
        if play is None:
            self._code.value = self._log.value = ""
            return
        title, aim, task = html.escape(play.title), write_inline(play.aim), write_inline(play.task)
        words = f"<b>{title}</b><br><i>{aim}</i><p>{task}</p><p><small>{html.escape(session.write_rules())}</small></p>"  # noqa: E501
        self._head.value = PANEL_STYLE + _write_asleep() + write_box(words, "task", role=None)
        self._show_code(play)
        self._log.value = _write_log(play)
        if play.game.ended:
            self._end.value = _write_end(play)

    def _show_code(self, play: Session) -> None:
        text = play.hunt.text if play.game.code_is_open else ""
        self._code.value = write_code(_("The kernel"), text) if text else ""
        options = tuple(
            (f"{n}: {line.strip()}", n)
            for n, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        )
        # setting the same options again would clear the chosen line
        if options != self._line.options:
            self._line.options = options

    def _do_line(self) -> None:
        line = self._line.value
        if not isinstance(line, int):
            raise CourseError(_("choose a line first."))
        self._tell(self._playing.name_line(line))

    def _do_next(self) -> None:
        self._begin = self._begin_next
        self._start()

    def _tell(self, reply: Told, *, compared: bool = False) -> None:
        tables = _write_answer(reply.answer, compared) if reply.answer else ""
        self._answer.value = (
            write_box(f"<p>{write_inline(reply.words)}</p>{tables}", _LOOKS[reply.good])
            if reply.words or tables
            else ""
        )
        self._show()

    @property
    def _playing(self) -> Session:
        assert self.session is not None, "its buttons are there only while one is played"
        return self.session

    def _guard(self, action: Callable[[], None]) -> Callable[[], None]:
        """Wrap an action: disable the buttons while it runs, and show its exceptions, because
        Jupyter hides those of a callback."""

        def act() -> None:
            for button in self._buttons.values():
                button.disabled = True
            before = self._answer.value
            self._answer.value = write_busy(_("running the kernel ..."))
            try:
                action()
            except (CourseError, OSError) as problem:
                self._answer.value = write_box(write_inline(str(problem)), "open", "alert")
            except Exception as fault:
                where = traceback.extract_tb(fault.__traceback__)[-1]
                fault_text = f"{type(fault).__name__}: {fault} ({where.name}, line {where.lineno})"
                words = _(
                    "The course itself failed: {words}. Run `course doctor`, and report these"
                    " words."
                ).format(words=fault_text)
                self._answer.value = before + write_box(write_inline(words), "bad", "alert")
            finally:
                for button in self._buttons.values():
                    button.disabled = False

        return act

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        words = _("A hunt: a kernel with one thing wrong. Run this cell to play it.")
        live = super()._repr_mimebundle_(**kwargs) or {}
        still = {
            "text/html": PANEL_STYLE + write_box(write_inline(words), role=None),
            "text/plain": words,
        }
        return still | {kind: data for kind, data in live.items() if kind == VIEW}


def _find_controls(play: Session | None) -> set[str]:
    """Return the names of the controls that the learner can use now."""
    if play is None:
        return set()
    state = play.game
    if state.ended:
        return {NEXT}
    usable = {ASK, GIVE_UP, _INPUT}
    if state.exposing is None:
        usable |= {COMPARE, CLAIM}
    if not state.code_is_open:
        usable.add(BUY)
    elif state.named is None:
        usable.add(NAME)
    return usable


def _write_asleep() -> str:
    words = _("<b>This hunt is asleep</b>: it is from an earlier session. Run this cell to go on.")
    return f'<div class="course-box open course-asleep">{words}</div>'


def _wrap() -> ipywidgets.Layout:
    """Return a new layout. Rows cannot share one, because hiding one row would then hide the
    others."""
    return ipywidgets.Layout(flex_flow="row wrap", align_items="center")


def _make_field(
    name: str, value: Any, choices: tuple[str, ...] | None, options: CaseOptions
) -> Any:
    named = {"description": name, "style": {"description_width": "initial"}}
    if choices is not None:
        return ipywidgets.Dropdown(
            options=choices, value=value, layout=ipywidgets.Layout(width="150px"), **named
        )
    if name in ("BLOCK", "ROWS"):
        powers = [2**n for n in range(14 if name == "BLOCK" else 5)]
        follow = [("fits N", 0)] if name == "BLOCK" and options.whole_row else []
        return ipywidgets.Dropdown(
            options=follow + [(str(n), n) for n in powers],
            value=value,
            layout=ipywidgets.Layout(width="130px"),
            **named,
        )
    if isinstance(value, int):
        return ipywidgets.IntText(value=value, layout=ipywidgets.Layout(width="100px"), **named)
    return ipywidgets.FloatText(value=value, layout=ipywidgets.Layout(width="130px"), **named)


def _make_button(
    words: str, action: Callable[[], None], style: str = "", tip: str = ""
) -> ipywidgets.Button:
    button = ipywidgets.Button(
        description=words,
        button_style=style,
        tooltip=tip or words,
        layout=ipywidgets.Layout(width="auto"),
    )
    button.on_click(lambda pressed: action())
    return button


def _write_log(play: Session) -> str:
    if not play.game.questions:
        return ""
    endings = {True: _(" shows the mistake"), False: _(" is as expected"), None: ""}
    rows = "".join(
        f"<li><code>{html.escape(play.options.write(q.probe))}</code>{endings[q.exposes]}</li>"
        for q in play.game.questions
    )
    summary = _("{asked} asked, {paid} paid").format(
        asked=len(play.game.questions), paid=play.game.score
    )
    return write_box(f"<details><summary>{summary}</summary><ol>{rows}</ol></details>", role=None)


def _write_end(play: Session) -> str:
    won = play.game.won
    sign = f"<b class='course-status'>{_('✓ The hunt is won.') if won else _('The hunt has ended.')}</b>"  # noqa: E501
    paragraphs = (play.write_score(), *play.debrief(), draw.say_waiting(draw.count_waiting()))
    return write_box(
        sign + "".join(f"<p>{write_inline(text)}</p>" for text in paragraphs),
        "good" if won else "plain",
    )


def _write_answer(answer: Answer, compared: bool) -> str:
    grids = "".join(map(_write_grid, arrange(answer, compared)))
    notes = "".join(f"<p><b>{html.escape(note)}</b></p>" for note in answer.notes)
    return f'<div class="course-grids">{grids}</div>{notes}'


def _write_grid(grid: InputTable) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in grid.columns)
    rows = "".join(
        f"<tr><th>{html.escape(_('{name}, given').format(name=row.name) if row.kind == 'input' else row.name)}</th>{''.join(map(_write_cell, row.cells))}</tr>"  # noqa: E501
        for row in grid.rows
    )
    return f'<table class="course-grid"><tr><td></td>{head}</tr>{rows}</table>'


def _write_cell(cell: Cell) -> str:
    return (
        f'<td class="course-far">{html.escape(cell.text)}*</td>'
        if cell.look
        else f"<td>{html.escape(cell.text)}</td>"
    )
