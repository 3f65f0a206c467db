"""The parts of a step. A step is a two-minute edit inside a page, with small tries that tell
whether it is right.

A lesson's steps are in ``lessonNN/steps.py``, in the order of its page. Their cells, with
the solution, are in the lesson's script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from course_lib.base.errors import CourseError
from course_lib.base.translation import Translate
from course_lib.grading.public import CAUSES, make_sentence

KINDS = ("kernel", "torch", "numpy", "value")
DTYPES = ("fp32", "fp16", "bf16", "int32")


class WrongForm(ValueError):
    """Raised by ``accepts`` if the value does not have the form that the step asks for. The step's
    question would not help then, so it is left out. The message is for the learner."""


@dataclass(frozen=True)
class In:
    """A tensor or array that is an input of the step: ``values`` of any shape, rounded to
    ``dtype``.

    ``stride``: elements between the rows of a matrix, if the rows are not packed; the elements in
    the gaps are NaN.
    """

    values: Any
    dtype: str = "fp32"
    stride: int = 0

    def __post_init__(self) -> None:
        try:
            shape = self.shape
        except (TypeError, ValueError):
            raise CourseError(
                f"In: the values have to be numbers of one shape, and are {self.values!r}."
            ) from None
        _check_layout("In", shape, self.dtype, self.stride)

    @property
    def numbers(self) -> np.ndarray:
        return np.asarray(self.values, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape


@dataclass(frozen=True)
class Out:
    """A tensor that a kernel writes. Before the run every element is NaN, or ``start``: 0 if the
    kernel adds to the tensor."""

    shape: tuple[int, ...]
    dtype: str = "fp32"
    stride: int = 0
    start: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple):
            raise CourseError(
                f"Out: the shape has to be a tuple such as (5,), and is {self.shape!r}."
            )
        _check_layout("Out", self.shape, self.dtype, self.stride)


@dataclass(frozen=True)
class Try:
    """One small run of a step, with its expected result.

    Attributes:
        what: describes the try to the learner if it fails: "five numbers in a block of eight".
        arguments: In, Out, whole numbers and floats: for a kernel a dict, in the kernel's order;
            for a function a tuple.
        grid: for kernels: one to three numbers of programs.
        constexprs: for kernels: by name.
        expected: for a kernel its outputs by name, each in the shape of its Out; for a function its
            result, or a tuple of results. float64.
        within: the allowed error, relative to the largest finite expected number of the output. An
            expected NaN or infinity has to be matched exactly.
        orders: number of orders of the programs' memory operations to try in CPU mode; above 0 if
            programs share memory.
        asked: False if the step's question does not help when this try fails.
    """

    what: str
    arguments: Mapping[str, Any] | tuple[Any, ...]
    expected: Any
    grid: tuple[int, ...] = (1,)
    constexprs: Mapping[str, int] = field(default_factory=dict)
    within: float = 1e-4
    orders: int = 0
    asked: bool = True

    def __post_init__(self) -> None:
        faults = [
            (not self.what.strip(), "`what` has to say in words what is tried"),
            (
                not isinstance(self.grid, tuple)
                or not 1 <= len(self.grid) <= 3
                or any(type(n) is not int or n < 1 for n in self.grid),
                "the grid has to be a tuple of one to three numbers",
            ),
            (not self.within >= 0, "`within` is 0 or more"),
            (self.orders < 0, "`orders` is 0 or more"),
        ]
        _raise_first(f"try {self.what!r}", faults)

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """Return the expected numbers by output. A function's outputs are called "result", or
        "result 1", "result 2" ..."""
        if isinstance(self.expected, Mapping):
            return {
                name: np.asarray(values, dtype=np.float64) for name, values in self.expected.items()
            }
        if isinstance(self.expected, tuple):
            return {
                f"result {n}": np.asarray(v, dtype=np.float64)
                for n, v in enumerate(self.expected, start=1)
            }
        return {"result": np.asarray(self.expected, dtype=np.float64)}


@dataclass(frozen=True)
class Slip:
    """A plausible wrong answer. The check recognises it by its results.

    Attributes:
        right: a text of the cell's solution.
        wrong: the text that replaces it in the wrong answer.
        cause: an identifier of the grader's causes, or a headline for this step only. "" if the run
            shows the cause (an address outside of a tensor, a race, a deadlock, an error), and for
            a value, because ``accepts`` says what is wrong.
        question: leads to the solution without giving it; "" takes that of the grader's cause.
    """

    right: str
    wrong: str
    cause: str = ""
    question: str = ""

    def __post_init__(self) -> None:
        texts = (self.right, self.wrong, self.cause, self.question)
        faults = [
            (
                not all(isinstance(text, str) for text in texts),
                "right, wrong, cause and question are texts",
            ),
            (bool(self.question) and not self.cause, "a question needs a cause"),
            (
                bool(self.cause) and self.cause not in CAUSES and not self.question,
                "a headline of its own needs a question",
            ),
        ]
        _raise_first(f"slip {self.wrong!r}", faults)

    def word_for(self, kind: str) -> tuple[str, str, str]:
        """Return cause, headline and question for the verdict on a step of this kind."""
        if self.cause not in CAUSES:
            return "known_slip", make_sentence(self.cause), self.question
        headline, question = CAUSES[self.cause].word_for(kind)
        return self.cause, make_sentence(headline), self.question or question


@dataclass(frozen=True)
class Step:
    """One step of a lesson.

    Attributes:
        id: the lesson's number, and a word or two: "01-mend".
        kind: "kernel" (a Triton kernel), "torch" or "numpy" (a function), "value" (a variable that
            the cell assigns).
        entry_point: the name of the kernel, function or variable.
        question: asked after a failure that no slip explains, if the lines that the learner was not
            asked to change are still in the cell.
        debrief: one or two sentences after a pass about the purpose of the step. `code` in
            backquotes, here and in the question.
        tries: two or three small ones; none for a value.
        other_debrief: for a value: a condition, and what is said in place of the debrief after a
            pass with a value for which it holds: that value is right for another reason.
        accepts: for a value: returns "" if it is right, else the reason for the learner why it is
            not. The step's question follows, unless the reason ends in a question. May raise
            WrongForm.
        slips: wrong answers with known causes. Tests prove that each fails, with its cause and its
            question.
    """

    id: str
    kind: str
    entry_point: str
    question: str
    debrief: str
    tries: tuple[Try, ...] = ()
    accepts: Callable[[Any], str] | None = None
    slips: tuple[Slip, ...] = ()
    other_debrief: tuple[Callable[[Any], bool], str] | None = None

    def __post_init__(self) -> None:
        is_value = self.kind == "value"
        faults = [
            (not re.fullmatch(r"\d\d-[a-z0-9-]+", self.id),
                "an id is the lesson's number and a word or two, as in 01-mend"),
            (self.kind not in KINDS, f"kind is one of {', '.join(KINDS)}"),
            (not self.entry_point.isidentifier(),
                "entry_point is the name of a kernel, a function or a value"),
            (not self.question.strip() or not self.debrief.strip(),
                "question and debrief must say something"),
            (is_value and (self.accepts is None or bool(self.tries)),
                "a value has `accepts`, and no tries"),
            (not is_value and (self.accepts is not None or not self.tries),
                "it needs at least one Try, and `accepts` is for values"),
            (not isinstance(self.tries, tuple) or not all(isinstance(t, Try) for t in self.tries),
                "tries is a tuple of Try: is a comma missing?"),
            (not isinstance(self.slips, tuple) or not all(isinstance(s, Slip) for s in self.slips),
                "slips is a tuple of Slip: is a comma missing?"),
        ]  # fmt: skip
        _raise_first(f"step {self.id}", faults)
        for attempt in self.tries:
            check = _check_kernel_try if self.kind == "kernel" else _check_function_try
            _raise_first(f"step {self.id}, try {attempt.what!r}", check(attempt))

    @property
    def lesson(self) -> str:
        return self.id[:2]

    def translate(self, translate: Translate) -> Step:
        """Return the step with its words in another language. What ``accepts`` says is translated
        where it is said."""
        tries = tuple(replace(attempt, what=translate(attempt.what)) for attempt in self.tries)
        slips = tuple(
            replace(
                slip,
                cause=slip.cause if slip.cause in CAUSES else translate(slip.cause),
                question=translate(slip.question),
            )
            for slip in self.slips
        )
        other_debrief = self.other_debrief
        return replace(
            self,
            question=translate(self.question),
            debrief=translate(self.debrief),
            tries=tries,
            slips=slips,
            other_debrief=None
            if other_debrief is None
            else (other_debrief[0], translate(other_debrief[1])),
        )

    def write_debrief(self, value: Any) -> str:
        """Return what is said after a pass with this value."""
        if self.other_debrief is not None and self.other_debrief[0](value):
            return self.other_debrief[1]
        return self.debrief


def _check_kernel_try(attempt: Try) -> list[tuple[bool, str]]:
    if not isinstance(attempt.arguments, Mapping) or not isinstance(attempt.expected, Mapping):
        return [
            (True, "a kernel's arguments and expected are dicts, by the names of its parameters")
        ]
    outs = {name: out for name, out in attempt.arguments.items() if isinstance(out, Out)}
    numbers = attempt.outputs
    return [
        (not all(_is_argument(a) or isinstance(a, Out) for a in attempt.arguments.values()),
            "an argument is an In, an Out, a whole number or a float"),
        (not outs, "one argument at least has to be an Out"),
        (outs.keys() != numbers.keys(),
            f"expected needs an entry for each Out, and no other: {', '.join(outs)}"),
        (any(name in numbers and numbers[name].shape != out.shape for name, out in outs.items()),
            "what is expected has not the shape of its Out"),
    ]  # fmt: skip


def _check_function_try(attempt: Try) -> list[tuple[bool, str]]:
    return [
        (
            not isinstance(attempt.arguments, tuple),
            "a function's arguments are a tuple: is a comma missing?",
        ),
        (
            isinstance(attempt.arguments, tuple)
            and not all(_is_argument(a) for a in attempt.arguments),
            "an argument of a function is an In, a whole number or a float",
        ),
        (
            isinstance(attempt.expected, Mapping),
            "expected is what the function returns, or a tuple of that",
        ),
        (
            attempt.grid != (1,) or bool(attempt.constexprs) or bool(attempt.orders),
            "grid, constexprs and orders are for kernels",
        ),
    ]


def _is_argument(value: Any) -> bool:
    return isinstance(value, In) or (isinstance(value, int | float) and not isinstance(value, bool))


def _check_layout(subject: str, shape: tuple[int, ...], dtype: str, stride: int) -> None:
    faults = [
        (dtype not in DTYPES, f"dtype is one of {', '.join(DTYPES)}"),
        (
            any(type(size) is not int or size < 1 for size in shape),
            "every size of the shape is a number above 0",
        ),
        (
            bool(stride) and (len(shape) != 2 or stride < shape[-1]),
            "a stride is for matrices, and at least their columns",
        ),
    ]
    _raise_first(f"{subject} of shape {shape}", faults)


def _raise_first(where: str, faults: list[tuple[bool, str]]) -> None:
    for wrong, words in faults:
        if wrong:
            raise CourseError(f"{where}: {words}.")
