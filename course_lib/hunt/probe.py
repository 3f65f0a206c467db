"""An input that the learner chooses: shape, numbers, dtype and layout."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.base.plain import decode
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.catalog import texts
from course_lib.grading.public import Case, SharedCase, list_cases

# the word that a learner chooses, and its name in a Case of the grader
VALUES = {
    "normal": "normal",
    "constant": "constant",
    "nan": "nan row",
    "inf": "inf row",
    "zeros": "zeros",
    "special": "special",
}
WEIGHTS = {"plain": True, "drawn": False}
_LAYOUTS = ("packed", "sliced", "transposed", "expanded")
_MOST = {"M": 300, "N": 8192, "BLOCK": 8192, "ROWS": 16, "P": 16}
_MOST_ELEMENTS, _MOST_STEPS = 1 << 15, 1 << 10
# rows up to this length hold small whole numbers, while mean and std are as at first
HAND_COLUMNS = 16
_LARGEST = {"mean": 1e6, "std": 1e4, "eps": 10.0}


@dataclass(frozen=True)
class Probe:
    """One input. If a block has to hold a whole row, ``BLOCK`` 0 means the smallest power of two
    that holds N. ``P`` is the number of programs of a persistent kernel."""

    M: int = 2
    N: int = 4
    BLOCK: int = 0
    ROWS: int = 1
    dtype: str = "fp32"
    mean: float = 0.0
    std: float = 1.0
    eps: float = 1e-5
    values: str = "normal"
    layout: str = "packed"
    weights: str = "plain"
    P: int = 1

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Probe:
        """Make a probe from the result of :meth:`as_dict`.

        Raises: ValueError if it is not such a result.
        """
        return decode(cls, fields)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class CaseOptions:
    """The choices for an exercise's kernel: the fields that vary among the grader's own cases, with
    their values.

    Attributes:
        names: the fields of a probe that can be chosen, in the order in which they are shown.
        dtypes, values, layouts: the choices for these three fields.
        whole_row: a block holds a whole row, so BLOCK is at least N.
        sample: a case of the grader that supplies everything a probe does not contain.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: tuple[str, ...]
    layouts: tuple[str, ...]
    whole_row: bool
    sample: Case

    def first(self) -> Probe:
        """Return a small plain input to begin with."""
        probe = Probe(M=2 if "M" in self.names else 1, BLOCK=0 if self.whole_row else 4)
        return replace(probe, **{name: 2 for name in ("ROWS", "P") if name in self.names})

    def check(self, probe: Probe) -> Probe:
        """Check that the kernel can run on the probe, and return it. A BLOCK with the value that 0
        stands for becomes 0.

        Raises: CourseError if the kernel cannot run on it.
        """
        self._check_fields(probe)
        if self.whole_row and 0 < probe.BLOCK < probe.N:
            words = _(
                "this kernel holds a whole row in one block: BLOCK is at least N = {N}. `fits N`"
                " lets it follow N."
            )
            raise CourseError(words.format(N=probe.N))
        if probe.values in ("nan", "inf") and probe.M < 2:
            raise CourseError(
                _("one row of several holds the NaN or the Inf, so M has to be at least 2.")
            )
        self._check_cost(probe)
        follows = self.whole_row and self.find_block(replace(probe, BLOCK=0)) == probe.BLOCK
        return replace(probe, BLOCK=0) if follows else probe

    def _check_fields(self, probe: Probe) -> None:
        """Refuse a field that is out of its own range."""
        for name, most in _MOST.items():
            value = getattr(probe, name)
            if not (1 <= value <= most) and not (name == "BLOCK" and value == 0 and self.whole_row):
                raise CourseError(
                    _("{name} has to be between 1 and {most}, and is {value}.").format(
                        name=name, most=most, value=value
                    )
                )
        for name in ("BLOCK", "ROWS"):
            if (value := getattr(probe, name)) & (value - 1):
                raise CourseError(
                    _("{name} has to be a power of two, and is {value}.").format(
                        name=name, value=value
                    )
                )
        self._check_choices(probe)
        for name, most in _LARGEST.items():
            value = getattr(probe, name)
            if not math.isfinite(value) or abs(value) > most or (name != "mean" and value <= 0):
                above = _("{name} has to be above 0 and at most {most}, and is {value}.")
                words = (
                    _("{name} has to be at most {most}, and is {value}.")
                    if name == "mean"
                    else above
                )
                raise CourseError(words.format(name=name, most=f"{most:g}", value=f"{value:g}"))

    def _check_choices(self, probe: Probe) -> None:
        """Refuse a field that has another value than those that are offered."""
        choices = {
            "dtype": self.dtypes,
            "values": self.values,
            "layout": self.layouts,
            "weights": tuple(WEIGHTS),
        }
        for name, offered in choices.items():
            if (value := getattr(probe, name)) not in offered:
                raise CourseError(
                    _("{name} can be {offered}, and not {value}.").format(
                        name=name, offered=list_words(offered), value=repr(value)
                    )
                )

    def _check_cost(self, probe: Probe) -> None:
        """Refuse an input on which the kernel would take too long."""
        if probe.M * probe.N > _MOST_ELEMENTS:
            words = _("M times N is {size}; at most {most}, so that the interpreter answers soon.")
            raise CourseError(words.format(size=probe.M * probe.N, most=_MOST_ELEMENTS))
        steps = -(-probe.M // probe.ROWS) * -(-probe.N // self.find_block(probe))
        if steps > _MOST_STEPS:
            words = _(
                "that is {steps} blocks of work; at most {most}, so that the interpreter answers"
                " soon. Take a larger BLOCK."
            )
            raise CourseError(words.format(steps=steps, most=_MOST_STEPS))

    def find_block(self, probe: Probe) -> int:
        """Return the BLOCK of the launch."""
        return probe.BLOCK or 1 << max(probe.N - 1, 0).bit_length()

    def write(self, probe: Probe) -> str:
        """Write the input: "M=2 N=5 BLOCK=8 mean=3".

        Fields with the value of :meth:`first` are left out, except for shape and dtype.
        """
        start, parts = self.first(), []
        for name in self.names:
            value = self.find_block(probe) if name == "BLOCK" else getattr(probe, name)
            if name in ("M", "N", "BLOCK", "ROWS", "P", "dtype") or value != getattr(start, name):
                parts.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
        return " ".join(parts)

    def make_case(self, probe: Probe) -> Case:
        """Make a case of the grader from the probe. Random numbers depend only on N, so that one
        field at a time can be changed."""
        start = self.first()
        by_hand = probe.N <= HAND_COLUMNS and (probe.mean, probe.std) == (start.mean, start.std)
        shared = {"partials": probe.P, "orders": 1} if isinstance(self.sample, SharedCase) else {}
        return replace(
            self.sample, **shared, name=f"hunt, N = {probe.N}", why="your input",
            M=probe.M, N=probe.N, block=self.find_block(probe), rows=probe.ROWS, dtype=probe.dtype,
            mean=probe.mean, std=probe.std,
            eps=probe.eps, fill=VALUES[probe.values], layout=probe.layout,
            plain=WEIGHTS[probe.weights], w_dtype="", dtypes=(), leading=(), by_hand=by_hand,
        )  # fmt: skip

    def find_probe(self, case: Case) -> Probe | None:
        """Find the probe that gives a case of the grader; None if no probe does."""
        values = {fill: name for name, fill in VALUES.items()}.get(case.fill)
        if values is None or case.has_mixed_dtypes or case.layout not in self.layouts:
            return None
        probe = Probe(
            case.M,
            case.N,
            case.block,
            case.rows,
            case.dtype,
            case.mean,
            case.std,
            case.eps,
            values,
            case.layout,
            "drawn" if "weights" in self.names else "plain",
            case.partials if isinstance(case, SharedCase) else 1,
        )
        try:
            return self.check(probe)
        except CourseError:
            return None


@functools.cache
def find_options(exercise_id: str) -> CaseOptions:
    """Find the choices for this exercise's kernel."""
    cases = list_cases(exercise_id)
    rows = [case for case in cases if not case.is_far]

    def varied(name):
        return len({getattr(case, name) for case in cases}) > 1

    has_w = "w_ptr" in texts.make_unsolved_text(catalog.get(exercise_id))
    offered = {
        "M": varied("M"), "N": True, "BLOCK": True, "ROWS": varied("rows"),
        "P": all(isinstance(case, SharedCase) for case in cases) and varied("partials"),
        "dtype": varied("dtype"), "mean": varied("mean"), "std": varied("std"),
        "eps": varied("eps"), "values": True, "layout": len({case.layout for case in rows}) > 1,
        "weights": has_w,
    }  # fmt: skip
    return CaseOptions(
        names=tuple(name for name, is_offered in offered.items() if is_offered),
        dtypes=tuple(
            dtype
            for dtype in ("fp32", "fp16", "bf16")
            if any(case.dtype == dtype for case in cases)
        ),
        values=tuple(
            name for name, fill in VALUES.items() if any(case.fill == fill for case in cases)
        ),
        layouts=tuple(layout for layout in _LAYOUTS if any(case.layout == layout for case in rows)),
        whole_row=all(case.one_block for case in cases),
        sample=next(case for case in cases if case.fill == "normal" and case.layout == "packed"),
    )
