"""Tests of LayerNorms: each has to raise AssertionError for kernels with a bug that shipped, and to
return for right ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.buffers import Tensor
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Expected, Outputs, Part, Plan, Symptom

_CALLS = 2  # calls of a test with one kernel, each with other random numbers


@dataclass(frozen=True)
class KernelCase(Case):
    """One kernel under test: ``kernel`` as in :mod:`course_lib.norms.specimens`, ``why`` for a
    person."""

    kernel: str = ""
    is_right: bool = False
    backward: bool = False

    def describe(self) -> str:
        return self.describe_why()

    def describe_outcome(self, entry_point: str, outputs: Outputs) -> str:
        if not outputs:
            return ""  # the case did not finish
        raised, called = int((outputs["raised"] == 1).sum()), bool(outputs["called"].any())
        wrong = raised if self.is_right else _CALLS - raised
        words = (
            _("{test} returns{often} for {kernel}")
            if called
            else _("{test} returns without a call{often} for {kernel}")
        )
        words = _("{test} raises AssertionError{often} for {kernel}") if self.is_right else words
        often = (
            ""
            if wrong == _CALLS
            else _(" in {wrong} of {calls} calls").format(wrong=wrong, calls=_CALLS)
        )
        return words.format(test=entry_point, often=often, kernel=self.describe_why())


def _list_kernels(test: str, backward: bool, wrong: dict[str, str]) -> tuple[KernelCase, ...]:
    """List the kernels that ``test`` gets, as cases. The fill "worked" keeps the shape: the test
    chooses its shapes itself."""
    right = _RIGHT_BACKWARD if backward else _RIGHT_FORWARD
    return tuple(
        KernelCase(
            f"{test}: {name}", 1, 1, 0,
            f"{'a right kernel' if kernels is right else 'a kernel'} {words}".rstrip(),
            "the right kernel is accused" if kernels is right else "the bug is not caught",
            fill="worked", kernel=name, is_right=kernels is right, backward=backward,
        )
        for kernels in (wrong, right)
        for name, words in kernels.items()
    )  # fmt: skip


_RIGHT_FORWARD = {
    "right": "in two passes",
    "right in fp64": "that computes in fp64",
    "right by merging": "that merges blocks of 16 columns, as Chan does",
    "right in blocks": "in blocks of 32 columns, with its masks",
    "right shifted": "in one pass over the distances from the mean of the row's first 32 numbers",
    "right approximate": "whose reciprocal root is a GPU's, right to 21 bits",
    "right in other memory": "whose y lies column after column in memory",
}
_RIGHT_BACKWARD = {
    "right": "",
    "right in fp64": "that computes mean and rstd in fp64",
    "right by atomics": "whose rows are added by atomics, in another order at each call",
    "right in partials": "with a partial sum for each 32 rows",
    "right approximate": "whose reciprocal root is a GPU's, right to 21 bits",
    "right in other memory": "whose dx lies column after column in memory",
}
_PADDED = {
    "padded row": "with one block for the row, whose spare lanes get into the variance",
    "padded blocks of 128": "in blocks of 128 columns, whose spare lanes get into the variance",
    "padded blocks of 4": "in blocks of 4 columns, whose spare lanes get into the variance",
    "divided by lanes": "with one block for the row, which divides by the number of its lanes",
}
_ALL_NAN = "one pass, rounded down"
_ONE_PASS = {
    "one pass": "in one pass: mean of the squares less square of the mean",
    "one pass, clamped": "in one pass, with 0 for a variance that comes out negative",
    "one pass in blocks": "in one pass, in blocks of 64 columns",
    _ALL_NAN: (
        "in one pass, whose sums are cut off and not rounded: at a large mean every variance is"
        " negative, and every y NaN"
    ),
}
_STRIDES = {
    "rows N apart": "that takes N for the distance between the rows of x",
    "columns 1 apart": "that takes the columns of x to lie one after the other",
    "read from the first on": "that reads M * N numbers from the first on",
    "columns 1 apart again": "whose second sweep forgets the column stride of x",
    "y with strides of x": "that writes the rows of y as far apart as those of x",
}
_LEADING = {
    "first dimension": "that takes x.shape[0] for the number of rows",
    "first dimension, long rows": (
        "that takes x.shape[0] for the number of rows, and all the rest for one row"
    ),
    "first two dimensions": (
        "that takes x.shape[0] * x.shape[1] for the number of rows of an x that is no matrix"
    ),
    "summed over first": "that adds dw and db up over the first dimension alone",
}
_INPUTS = {
    "dx over dy": "that writes dx over dy",
    "wdy over dy": "that writes w * dy over dy",
    "xhat over x": "that writes xhat over x",
}
_REMAINDER = {
    "partials of 4, floor": "with a partial sum for each 4 rows, and room for M // 4 of them",
    "partials of 16, floor": "with a partial sum for each 16 rows, and room for M // 16 of them",
    "partials of a large batch, floor": (
        "with a partial sum for each 8 rows where M >= 1024 and N < 64, and room for M // 8 of them"
    ),
    "shares of 8 programs, floor": "of 8 programs with M // 8 rows each",
    "grid of 2 rows, floor": "with 2 rows a program, and M // 2 programs",
}
_SAVED = {
    "saved as x": "that saves mean and rstd in the dtype of x",
    "mean saved as x": "that saves mean in the dtype of x, and rstd in fp32",
    "mean saved in bf16": "that saves mean in bf16, whatever dtype x has",
}


def _plan(case: KernelCase, entry_point: str, rng: np.random.Generator) -> Plan[KernelCase]:
    seeds = tuple(int(seed) for seed in rng.integers(2**31, size=_CALLS))
    verdicts = Expected(np.full(_CALLS, 0.0 if case.is_right else 1.0), np.full(_CALLS, 0.25))
    # evidence for the causes; it is never judged
    seen = Expected(np.ones(_CALLS), np.full(_CALLS, np.nan))
    expected = {"raised": verdicts, "called": seen, "dtypes": seen}
    outputs = tuple(Tensor(name, "fp32", (_CALLS,), (1,)) for name in expected)
    return Plan(
        case,
        entry_point,
        (),
        outputs,
        (None, *seeds),
        {"backward": int(case.backward)},
        expected,
        kernel_under_test=case.kernel,
    )


def _make_part(test: str, backward: bool, wrong: dict[str, str], missed: str) -> Part[KernelCase]:
    """Make the part of one test. ``missed`` is the cause if the test accepts wrong kernels, and
    right ones as well."""
    causes: tuple[tuple[str, Symptom[KernelCase]], ...] = (
        ("kernel_not_called", lambda plan, outputs: not outputs["called"].any()),
        (
            "dtypes_differ",
            lambda plan, outputs: plan.case.is_right and bool(outputs["dtypes"].any()),
        ),
        ("right_kernel_accused", lambda plan, outputs: plan.case.is_right),
        ("nan_not_caught", lambda plan, outputs: plan.case.kernel == _ALL_NAN),
        (missed, lambda plan, outputs: not plan.case.is_right),
        ("test_undecided", lambda plan, outputs: True),
    )
    return Part(_list_kernels(test, backward, wrong), _plan, rare=causes)


_TESTS = (
    ("catch_padding", False, _PADDED, "padding_not_caught"),
    ("catch_one_pass", False, _ONE_PASS, "one_pass_not_caught"),
    ("catch_strides", False, _STRIDES, "strides_not_caught"),
    ("catch_leading_dimensions", True, _LEADING, "leading_dimensions_not_caught"),
    ("catch_overwriting", True, _INPUTS, "overwriting_not_caught"),
    ("catch_remainder", True, _REMAINDER, "remainder_not_caught"),
    ("catch_rounded_statistics", True, _SAVED, "rounded_statistics_not_caught"),
)
PARTS = {
    test: _make_part(test, backward, wrong, missed) for test, backward, wrong, missed in _TESTS
}
