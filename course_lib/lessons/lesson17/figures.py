"""The figures of lesson 17: the bugs that each input shows, and the kernels that the tests of
exercise 17a caught."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson17.museum import Met
from course_lib.lessons.pictures.chart.model import Cells, View, chart

_LOOKS = {"": "waiting", "\u2713": "done", "\u2717": "fault"}
# marked for translation: the page of the lesson calls its kernels so
_BUGS = (N_("kernel 1"), N_("kernel 2"), N_("kernel 3"))
SHOWS = 0.01  # a larger error shows a bug: no test has a tolerance as wide as this


def show_errors(table: Mapping[str, Mapping[str, float]]) -> MovingPicture:
    """Show a grid with a row per bug and a column per input; a cell has the largest error of y.

    Args:
        table: for each bug and each input, both in words, the largest error of y.
    """
    inputs = list(next(iter(table.values())))
    blind = [name for name in inputs if not any(_shows(row[name]) for row in table.values())]
    title = (
        _("Input {name} shows no bug, and no input shows all")
        if blind
        else _("No input shows every bug")
    )
    title = title.format(name=blind[0].partition(":")[0]) if blind else title
    words = [[_say(error) for error in row.values()] for row in table.values()]
    looks = [
        ["done" if _shows(error) else "waiting" for error in row.values()] for row in table.values()
    ]
    inputs_by_bug = {
        bug: list_words(name.partition(":")[0] for name, error in row.items() if _shows(error))
        for bug, row in table.items()
    }
    bugs_text = join_sentences(
        *(
            _("{bug}: shown by {names}.").format(bug=_(bug), names=names or _("none"))
            for bug, names in inputs_by_bug.items()
        )
    )
    return chart(
        View(title, [Cells([_(bug) for bug in table], [_(name) for name in inputs], words, looks)]),
        alt=_("A grid of {bugs} bugs and {inputs} inputs, with how far y is off. {told}").format(
            bugs=len(table), inputs=len(inputs), told=bugs_text
        ),
    )


def _draw_kernels(title: str, names: Sequence[str], groups: Sequence[Sequence[Met]]) -> Cells:
    """Return a row per test with a cell per kernel of its group, filled up to the longest one."""
    most = max(map(len, groups))
    words = [[_sign(kernel) for kernel in group] + [None] * (most - len(group)) for group in groups]
    looks = [[_LOOKS[word or ""] for word in line] for line in words]
    return Cells(names, [""] * most, words, looks, title=title)


def show_met(kernels_by_test: Mapping[str, Sequence[Met]]) -> MovingPicture:
    """Show a row per test and a cell per kernel, once for the wrong kernels and once for the right
    ones. A cell shows whether the test raised."""
    panels, counts_by_test = [], {test: list[str]() for test in kernels_by_test}
    names = [test.removeprefix("catch_").replace("_", " ") for test in kernels_by_test]
    for title, words_of, is_right in (
        (_("wrong kernels"), _("{count} of {all} wrong kernels caught."), False),
        (_("right kernels"), _("{count} of {all} right kernels accused."), True),
    ):
        groups = [
            [kernel for kernel in kernels if kernel.is_right == is_right]
            for kernels in kernels_by_test.values()
        ]
        panels.append(_draw_kernels(title, names, groups))
        for test, group in zip(kernels_by_test, groups, strict=True):
            counts_by_test[test].append(
                words_of.format(
                    count=sum(kernel.caught is True for kernel in group), all=len(group)
                )
            )
    kernels = [kernel for group in kernels_by_test.values() for kernel in group]
    counts_text = _("None has run yet.")
    if any(kernel.caught is not None for kernel in kernels):
        counts_text = join_sentences(
            *(
                _("{name}: {values}").format(name=test, values=join_sentences(*words))
                for test, words in counts_by_test.items()
            )
        )
    perfect_tests = sum(
        all(kernel.caught is not None and kernel.caught != kernel.is_right for kernel in group)
        for group in kernels_by_test.values()
    )
    caption = _(
        "\u2713: a wrong kernel found, a right one left alone. \u2717: a wrong one missed, a right"
        " one accused."
    )
    return chart(
        View(
            _("{full} of {all} bugs caught").format(full=perfect_tests, all=len(kernels_by_test)),
            panels,
            caption,
        ),
        alt=_(
            "A grid of {count} tests and the kernels that they meet, wrong ones and right ones."
            " {said}"
        ).format(count=len(kernels_by_test), said=counts_text),
    )


def _sign(kernel: Met) -> str:
    return (
        "" if kernel.caught is None else "\u2713" if kernel.caught != kernel.is_right else "\u2717"
    )


def _shows(error: float) -> bool:
    return not error <= SHOWS  # true for NaN as well


def _say(error: float) -> str:
    if math.isnan(error):
        return "NaN"
    return (
        f"{error:.0e}"
        if error < 1e-3
        else _("off by {error:,g}").format(error=float(f"{error:.1g}"))
    )
