"""The rules of a hunt: the learner's moves and their cost.

A hunt has two parts. First the learner asks for the kernel's outputs on inputs of their choice,
until one output is shown to be wrong. Then the code is shown, and the learner names the wrong line.
At level "seen" the code is shown from the beginning. Moves are plain data in the progress file. Two
processes may add moves; a move that no longer applies changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from course_lib.hunt.probe import Probe

SEEN, BLIND = "seen", "blind"
LEVELS = (BLIND, SEEN)
# the price of each move
QUESTION, EXPECTED, CODE, WRONG = 1, 1, 4, 2


@dataclass(frozen=True)
class GameQuestion:
    """An input on which the learner ran the kernel.

    ``compared``: the expected outputs were shown as well. ``exposes``: whether the input shows the
    mistake; None if not known yet.
    """

    probe: Probe
    compared: bool = False
    exposes: bool | None = None


@dataclass(frozen=True)
class Game:
    """The state of a hunt.

    ``named`` is the wrong line, once the learner has found it. ``searched`` is the number of
    questions up to the first input that was shown to expose the mistake.
    """

    level: str
    questions: tuple[GameQuestion, ...] = ()
    code_bought: bool = False
    wrong_claims: int = 0
    wrong_lines: tuple[int, ...] = ()
    named: int | None = None
    searched: int | None = None
    given_up: bool = False

    @property
    def exposing(self) -> GameQuestion | None:
        """Return the first question that was shown to expose the mistake."""
        return next((question for question in self.questions if question.exposes), None)

    @property
    def code_is_open(self) -> bool:
        return self.level == SEEN or self.code_bought or self.exposing is not None or self.ended

    @property
    def won(self) -> bool:
        return self.named is not None and self.exposing is not None

    @property
    def ended(self) -> bool:
        return self.given_up or (self.named is not None and self.exposing is not None)

    @property
    def score(self) -> int:
        """Return the price of all moves; lower is better. A won hunt costs at least 1."""
        return (
            QUESTION * len(self.questions)
            + EXPECTED * sum(question.compared for question in self.questions)
            + CODE * self.code_bought
            + WRONG * (self.wrong_claims + len(self.wrong_lines))
        )

    def find(self, probe: Probe) -> int | None:
        """Find the number, from 0, of the question with this input."""
        return next(
            (number for number, question in enumerate(self.questions) if question.probe == probe),
            None,
        )

    def apply(self, move: Mapping[str, Any]) -> Game:
        """Return the game after ``move``, or the same game if the move does not apply or is
        invalid."""
        if self.ended:
            return self
        try:
            return _APPLY[move["kind"]](self, move)
        except (KeyError, TypeError, ValueError):
            return self


def replay(level: str, moves: Iterable[Mapping[str, Any]]) -> Game:
    """Return the game after these moves."""
    game = Game(level if level in LEVELS else BLIND)
    for move in moves:
        game = game.apply(move)
    return game


def _ask(game: Game, move: Mapping[str, Any]) -> Game:
    probe = Probe.from_dict(move["probe"])
    return (
        game
        if game.find(probe) is not None
        else replace(game, questions=(*game.questions, GameQuestion(probe)))
    )


def _compare(game: Game, move: Mapping[str, Any]) -> Game:
    return _judge(game, move["question"], bool(move["exposes"]), compared=True)


def _claim(game: Game, move: Mapping[str, Any]) -> Game:
    number, exposes = move["question"], bool(move["exposes"])
    if game.questions[_check(game, number)].exposes is not None:
        return game
    judged = _judge(game, number, exposes)
    return judged if exposes else replace(judged, wrong_claims=game.wrong_claims + 1)


def _judge(game: Game, number: int, exposes: bool, compared: bool = False) -> Game:
    questions = list(game.questions)
    question = questions[_check(game, number)]
    questions[number] = replace(question, exposes=exposes, compared=question.compared or compared)
    searched = len(questions) if exposes and game.searched is None else game.searched
    return replace(game, questions=tuple(questions), searched=searched)


def _check(game: Game, number: int) -> int:
    if type(number) is not int or not 0 <= number < len(game.questions):
        raise ValueError(f"there is no question {number}")
    return number


def _buy_code(game: Game, _: Mapping[str, Any]) -> Game:
    return game if game.code_is_open else replace(game, code_bought=True)


def _name_line(game: Game, move: Mapping[str, Any]) -> Game:
    line = move["line"]
    if (
        type(line) is not int
        or game.named is not None
        or line in game.wrong_lines
        or not game.code_is_open
    ):
        return game
    return (
        replace(game, named=line)
        if move["right"]
        else replace(game, wrong_lines=(*game.wrong_lines, line))
    )


def _give_up(game: Game, _: Mapping[str, Any]) -> Game:
    return replace(game, given_up=True)


_APPLY = {
    "ask": _ask,
    "compare": _compare,
    "claim": _claim,
    "code": _buy_code,
    "line": _name_line,
    "give up": _give_up,
}
