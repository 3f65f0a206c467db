"""A session of one hunt, for the panel: it runs each move, stores it in the learner's progress, and
describes it."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.words import format_count, list_words
from course_lib.grading.public import make_sentence, name_cause
from course_lib.hunt import draw, game
from course_lib.hunt.asking import Answer, UnfairProbe, ask
from course_lib.hunt.collection import Hunt, read_hunts
from course_lib.hunt.game import CODE, EXPECTED, QUESTION, WRONG, Game
from course_lib.hunt.probe import CaseOptions, Probe, find_options
from course_lib.learner import progress

# the exercise whose debrief tells where such a mistake was made, by cause, or by exercise and cause
_STORIES = {
    "store_outside": "00a", "padding_in_variance": "01b", "eps_outside": "02b",
    "cancellation": "03a", "empty_lane": "04b", "empty_partial": "04b",
    "stride_ignored": "07a", "11a stride_ignored": "11a", "11b stride_ignored": "11a",
    "low_precision": "10b", "06a low_precision": "06a",
}  # fmt: skip


def write_rules() -> str:
    return _(
        "Each question costs {question}, and {expected} more if you have the right numbers shown"
        " beside it. A wrong claim costs {wrong}, and so does a wrong line. If the code is hidden,"
        " it costs {code} to see it before you have found an input; after that it is free. Pay as"
        " little as you can."
    ).format(question=QUESTION, expected=EXPECTED, wrong=WRONG, code=CODE)


@dataclass(frozen=True)
class Told:
    """The result of a move. ``good``: whether the move was a success; None if it was neither a
    success nor a mistake."""

    words: str
    good: bool | None = None
    answer: Answer | None = None


class Session:
    """A play of a hunt. Each move is stored before its result is shown, so that a kill loses
    nothing. Two processes may play the same one."""

    def __init__(self, play: str, hunt: Hunt, level: str) -> None:
        self.play, self.hunt = play, hunt
        self.options: CaseOptions = find_options(hunt.exercise_id)
        self.answers: dict[Probe, Answer] = {}
        self._take(progress.note_hunt(play, hunt.id, level))

    def _take(self, record: progress.HuntRecord) -> None:
        self.game: Game = game.replay(record.level, record.moves)

    def _move(self, **move: object) -> None:
        self._take(progress.note_hunt(self.play, self.hunt.id, self.game.level, move))

    @property
    def title(self) -> str:
        """Return the title. It has only facts that the learner may know from the beginning."""
        of_day = _("Hunt {id}, the hunt of {day}: {title} ({exercise}), {level}, {difficulty}")
        words = (
            of_day
            if self.play != self.hunt.id
            else _("Hunt {id}: {title} ({exercise}), {level}, {difficulty}")
        )
        difficulty = "●" * self.hunt.level + "○" * (3 - self.hunt.level)
        return words.format(
            id=self.hunt.id,
            day=self.play,
            title=self.hunt.exercise.title,
            exercise=self.hunt.exercise.id,
            level=_name_level(self.game.level),
            difficulty=difficulty,
        )

    @property
    def aim(self) -> str:
        """Say what the right kernel does."""
        return _("What it is for: {objective}").format(
            objective=self.hunt.exercise.objective.strip()
        )

    @property
    def task(self) -> str:
        """Say what the learner has to do next."""
        if self.game.ended:
            return _("This hunt has ended.")
        if self.game.exposing is not None:
            words = _("`{input}` shows the mistake. Which line makes it? Name one.")
            return words.format(input=self.options.write(self.game.exposing.probe))
        if self.game.named is not None:
            return _(
                "You have found the mistake, in line {line}. Now find an input that shows it."
            ).format(line=self.game.named)
        return _("One thing in this kernel is wrong. Find an input that shows it.")

    @property
    def last(self) -> Probe:
        """Return the input of the last question, or the input to begin with."""
        return self.game.questions[-1].probe if self.game.questions else self.options.first()

    def find_answer(self, number: int) -> Answer:
        """Return the answer to an earlier question, which may have been asked in another
        process."""
        probe = self.game.questions[number].probe
        if probe not in self.answers:
            missing = [q.probe for q in self.game.questions if q.probe not in self.answers]
            self.answers |= zip(missing, ask(self.hunt, missing), strict=True)
        return self.answers[probe]

    def ask(self, probe: Probe) -> Told:
        """Run the kernel on an input. To repeat an input costs nothing.

        Raises: CourseError if the kernel cannot run on the input, or the hunt has ended;
        EnvironmentFault if this machine cannot run it.
        """
        self._check_open()
        probe = self.options.check(probe)
        if (number := self.game.find(probe)) is None:
            try:
                self.answers[probe] = ask(self.hunt, [probe])[0]
            except UnfairProbe:
                return Told(
                    _(
                        "On this input the right kernel is off, too, by more than the check allows."
                        " It says nothing, and costs nothing."
                    )
                )
            self._move(kind="ask", probe=probe.as_dict())
            if (number := self.game.find(probe)) is None:
                raise _make_not_kept()
        words = _("Question {number}: {input}").format(
            number=number + 1, input=self.options.write(probe)
        )
        return Told(words, answer=self.find_answer(number))

    def compare(self, probe: Probe) -> Told:
        """Show the expected outputs beside the kernel's, which may expose the mistake. It is free
        if the run itself shows the mistake.

        Raises: the exceptions of :meth:`ask`.
        """
        number, answer = self._find(probe)
        if answer.notes and answer.exposes:
            return self.claim(probe)
        if not self.game.questions[number].compared:
            self._move(kind="compare", question=number, exposes=answer.exposes)
        if not answer.exposes:
            return Told(
                _(
                    "On this input every result is within what the check allows: it does not show"
                    " the mistake."
                ),
                None,
                answer,
            )
        return Told(join_sentences(_("This input shows the mistake."), answer.worst), True, answer)

    def claim(self, probe: Probe) -> Told:
        """Claim that the kernel is wrong on this input.

        Raises: the exceptions of :meth:`ask`.
        """
        number, answer = self._find(probe)
        was_exposing = self.game.questions[number].exposes
        self._move(kind="claim", question=number, exposes=answer.exposes)
        if answer.exposes:
            return Told(
                join_sentences(_("This input shows the mistake."), answer.worst), True, answer
            )
        cost = "" if was_exposing is False else _(" The claim costs {cost}.").format(cost=WRONG)
        return Told(
            _("On this input every result is within what the check allows.{cost}").format(
                cost=cost
            ),
            False,
            answer,
        )

    def show_code(self) -> Told:
        self._check_open()
        was_open = self.game.code_is_open
        self._move(kind="code")
        return Told("" if was_open else _("The code costs {cost}.").format(cost=CODE))

    def name_line(self, line: int) -> Told:
        """Name the wrong line. Raises: CourseError if there is no such line, the code is not open,
        or the hunt has ended."""
        self._check_open()
        lines = self.hunt.text.splitlines()
        if not self.game.code_is_open:
            words = _(
                "a line is named when the code is there: find an input that shows the mistake, or"
                " buy the code for {cost}."
            )
            raise CourseError(words.format(cost=CODE))
        if not 1 <= line <= len(lines):
            raise CourseError(_("the code has lines 1 to {last}.").format(last=len(lines)))
        if self.game.named is not None:
            words = _(
                "You have found the mistake already, in line {line}. Now find an input that"
                " shows it."
            )
            return Told(words.format(line=self.game.named))
        if line in self.game.wrong_lines:
            return Told(
                _("Line {line} was named before, and is as it should be.").format(line=line), False
            )
        self._move(kind="line", line=line, right=line in self.hunt.lines)
        if line in self.game.wrong_lines:
            return Told(
                _("Line {line} is as it should be. That costs {cost}.").format(
                    line=line, cost=WRONG
                ),
                False,
            )
        if self.game.named != line:
            raise _make_not_kept()
        words = (
            _("Yes, the mistake is in line {line}.")
            if self.game.ended
            else _("Yes, the mistake is in line {line}. Now find an input that shows it.")
        )
        return Told(words.format(line=line), True)

    def give_up(self) -> Told:
        self._check_open()
        self._move(kind="give up")
        return Told(_("You have given this hunt up. It counts for nothing."))

    def write_score(self) -> str:
        """Write the cost of the hunt, and compare the questions with the cases that the grader
        needs."""
        asked, hunt, score = len(self.game.questions), self.hunt, self.game.score
        if hunt.killers == hunt.cases:
            grader = _("Each of the grader's {cases} cases shows this mistake.")
        elif hunt.killers == 1:
            grader = _(
                "Of the grader's {cases} cases {killers} shows this mistake: taken in any order, it"
                " runs {needed} of them on average until one does."
            )
        else:
            grader = _(
                "Of the grader's {cases} cases {killers} show this mistake: taken in any order, it"
                " runs {needed} of them on average until one does."
            )
        grader = grader.format(
            cases=hunt.cases, killers=hunt.killers, needed=f"{hunt.grader_needs:.1f}"
        )
        if not self.game.won:
            return grader
        searched = self.game.searched or asked
        needed = (
            _("You needed fewer questions.")
            if searched < hunt.grader_needs - 0.5
            else (
                _("You needed more questions.")
                if searched > hunt.grader_needs + 0.5
                else _("You needed as many.")
            )
        )
        with_search = _(
            "You paid {score}, with {questions}, {searched} of them until an input was found."
            " {grader} {needed}"
        )
        words = (
            _("You paid {score}, with {questions}. {grader} {needed}")
            if searched == asked
            else with_search
        )
        questions = format_count(asked, "question")
        return words.format(
            score=score,
            questions=questions,
            question_count=asked,
            searched=searched,
            grader=grader,
            needed=needed,
        )

    def debrief(self) -> list[str]:
        """Explain the mistake after the end: its cause, its line, an input that shows it, and,
        where one is known, such a mistake elsewhere."""
        if not self.game.ended:
            raise CourseError(_("the hunt has not ended."))
        headline, question = name_cause(self.hunt.cause, self.hunt.exercise)
        one_line = _("Line {lines}. The smallest of the grader's inputs that shows it: `{input}`.")
        where = (
            one_line
            if len(self.hunt.lines) == 1
            else _("Lines {lines}. The smallest of the grader's inputs that shows it: `{input}`.")
        )
        lines = list_words(self.hunt.lines)
        explanation = [
            make_sentence(headline),
            where.format(lines=lines, input=self.options.write(self.hunt.probe)),
            question,
        ]
        cause = self.hunt.cause
        teller = _STORIES.get(f"{self.hunt.exercise_id} {cause}", _STORIES.get(cause))
        return (
            [
                *explanation,
                _("Such a mistake elsewhere: {story}").format(story=catalog.get(teller).debrief),
            ]
            if teller
            else explanation
        )

    def _find(self, probe: Probe) -> tuple[int, Answer]:
        asked = self.ask(probe)
        number = self.game.find(self.options.check(probe))
        if number is None or asked.answer is None:
            raise CourseError(asked.words)
        return number, asked.answer

    def _check_open(self) -> None:
        """Raise CourseError if the hunt has ended, in this process or in another one."""
        self._take(progress.note_hunt(self.play, self.hunt.id, self.game.level))
        if self.game.ended:
            raise CourseError(_("this hunt has ended. Run this cell again for the next one."))


def _make_not_kept() -> CourseError:
    return CourseError(
        _(
            "this move was not kept: another window plays the same hunt. Run this cell again to see"
            " where it stands."
        )
    )


def _name_level(level: str) -> str:
    return {game.SEEN: _("seen"), game.BLIND: _("blind")}[level]


def resume_or_draw(level: str | None, exercise_id: str | None = None) -> Session | None:
    """Resume the hunt that was begun last and has not ended, or begin the next one; None if none
    waits.

    Args:
        level: the level of a new hunt; a hunt that was begun keeps its level.
        exercise_id: take only hunts on this exercise.

    Raises: CourseError if the exercise has no hunts, or the learner has not passed it.
    """
    plays, passed = progress.read_hunts(), draw.find_passed()
    if exercise_id is not None:
        _check_has_hunts(exercise_id, passed)
    unfinished = draw.find_unfinished(plays, passed, exercise_id)
    if unfinished is not None:
        return Session(unfinished, read_hunts()[plays[unfinished].hunt], plays[unfinished].level)
    waiting = [
        hunt for hunt in draw.list_waiting(plays, passed) if exercise_id in (None, hunt.exercise_id)
    ]
    hunt = draw.draw(waiting, sum(draw.is_ended(record) for record in plays.values()))
    return None if hunt is None else Session(hunt.id, hunt, level or game.BLIND)


def _check_has_hunts(exercise_id: str, passed: set[str]) -> None:
    of_exercise = [hunt for hunt in read_hunts().values() if hunt.exercise_id == exercise_id]
    if not of_exercise:
        listed = list_words(dict.fromkeys(hunt.exercise_id for hunt in read_hunts().values()))
        raise CourseError(
            _("there are no hunts on {id}. There are on {there}.").format(
                id=exercise_id, there=listed
            )
        )
    if not any(hunt.starter or exercise_id in passed for hunt in of_exercise):
        raise CourseError(
            _(
                "hunts on {id} open when you have passed it: their code is its solution but for a"
                " line."
            ).format(id=exercise_id)
        )


def explain_level(play: Session, level: str | None) -> str:
    """Explain why a hunt is not played at the ``level`` that was asked for; "" if it is."""
    if level in (None, play.game.level):
        return ""
    words = _(
        "hunt {id} is not ended, and stays as it was begun: {level}. Give it up to begin another"
        " one."
    )
    return words.format(id=play.hunt.id, level=_name_level(play.game.level))


def begin_daily() -> Session:
    """Begin or resume today's hunt. It is blind, so that the scores of a class can be compared."""
    day = draw.name_day()
    record = progress.read_hunts().get(day)
    if record is None:
        return Session(day, draw.draw_daily(day), game.BLIND)
    if record.hunt not in read_hunts():
        raise CourseError(
            _(
                "the course was updated since you began today's hunt, and no longer has it. There"
                " is another one tomorrow."
            )
        )
    return Session(day, read_hunts()[record.hunt], record.level)


def warn_of_daily() -> str:
    """Write the warning that a learner needs before today's hunt; "" if none is needed, or the
    learner has begun the hunt."""
    day = draw.name_day()
    hunt = draw.draw_daily(day)
    if hunt.starter or hunt.exercise_id in draw.find_passed() or day in progress.read_hunts():
        return ""
    words = _(
        "today's hunt is on {id}, which you have not passed. Once its input is found it shows the"
        " course's solution of {id} but for one line."
    )
    return words.format(id=hunt.exercise_id)
