"""Writes the first page: about the course, a moving picture, commands to start it, and every lesson
with its minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

import nbformat

from course_lib.authoring.site.html import (
    CourseSource,
    write_launches,
    write_raw,
    write_start,
    write_tab_button,
)
from course_lib.authoring.site.lessons import Lesson, list_exercises, mend_words
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import format_count, list_words

# the parts of the course, by the number of their last lesson
_PARTS = (
    (5, _("A kernel you can trust")),
    (9, _("Forward, fast, for any input")),
    (14, _("Backward")),
    (99, _("Know it")),
)
# Pictures for the first page, with words for how each is moved. The page has the first of these
# that a built notebook has.
_PICTURES = {
    "race": _("press Play, or go step by step"),
    "block_stepper": _("press Play, or go step by step, and drag a number"),
    "cancellation": _("drag the point, or choose another algorithm"),
}

_HEAD = _("""# LayerNorm and RMSNorm in Triton

You write the GPU kernels of LayerNorm and RMSNorm, one of which is in nearly every language model.
You predict a result before you see it. A check compares your kernel with float64 references, on a
laptop or on a GPU, and names the cause of what is wrong. At the end you have both norms, forward
and backward, close to the speed of the GPU's memory, and a small model that trains with them.

""")
_READ = _(
    '<p><a class="button" href="notebooks/{name}.html">Start lesson 00</a> Here you read it and'
    " move its pictures. In JupyterLab, on your machine, your first kernel runs after five minutes:"
    ' <a href="#start">Start</a> says how.</p>'
)
# with a tab: its button stands between the two
_BEGIN = _("<p>Lesson 00 comes first. Your first kernel runs after five minutes.</p>")
_READ_OR_START = _(
    '<p><a class="button" href="notebooks/{name}.html">Read it</a> Its pictures move, and its'
    ' answers are folded. To run it on your machine, see <a href="#start">Start</a>.</p>'
)
_MOVES = _("This picture of lesson {number} moves: {moves}.")
_START = _("## Start")
_ONLY_READ = _("On this site you can read every lesson, with its answers folded.")
_RUN_HERE = _(
    "Here you can read every lesson, and run all but two. Most exercises are checked here, too:"
    " [](./docs/browser.md) says which."
)
_NO_GPU = _(
    "You need no GPU: without one, kernels run in Triton's interpreter, and a kernel that passes is"
    " compiled, too. The first start says what it fetches before it does: about 0.5 GB without a"
    " GPU."
)


def write_front(
    notebooks: Mapping[str, nbformat.NotebookNode],
    lessons: Sequence[Lesson],
    guides: Sequence[str],
    source: CourseSource,
) -> str:
    """Write the first page as Markdown. ``notebooks`` has the built notebooks by name."""
    name, moves, picture = find_picture(notebooks)
    in_tab, first_name = write_tab_button(source), min(notebooks)
    hours = round(sum(lesson.minutes for lesson in lessons) / 60)
    parts = [
        _HEAD,
        write_raw(
            f"{_BEGIN}{in_tab}{_READ_OR_START.format(name=first_name)}"
            if in_tab
            else _READ.format(name=first_name)
        ),
        write_raw(picture),
        _MOVES.format(number=name[:2], moves=moves),
        _START,
        _RUN_HERE if in_tab else _ONLY_READ,
        write_raw(write_start(source) + write_launches(source)),
        _NO_GPU,
        _(
            "## Lessons\n\n{count} lessons, {hours} hours. In six hours: the exercises with ◆ and"
            " their lessons. At their end a small model\ntrains with kernels that you wrote.\n"
        ).format(count=len(lessons), hours=hours),
    ]
    for title, group in groupby(lessons, key=find_part):
        parts.append(f"### {title}\n")
        parts += [_write_lesson(lesson) for lesson in group]
    parts.append(_write_guides(guides))
    parts += [
        _write_contents(title, [f"notebooks/{lesson.name}" for lesson in group])
        for title, group in groupby(lessons, key=find_part)
    ]
    parts.append(_write_contents(_("Guides"), [guide.removesuffix(".md") for guide in guides]))
    return "\n\n".join(parts)


def find_part(lesson: Lesson) -> str:
    return next(title for last_number, title in _PARTS if int(lesson.name[:2]) <= last_number)


def find_picture(notebooks: Mapping[str, nbformat.NotebookNode]) -> tuple[str, str, str]:
    """Return the name of the notebook that has the picture, words for how it is moved, and its
    HTML.

    Raises: CourseError if no notebook has one.
    """
    for kind in _PICTURES:
        for name, notebook in notebooks.items():
            for cell in notebook.cells:
                for output in cell.get("outputs", []):
                    markup = output.get("data", {}).get("text/html", "")
                    if re.match(rf'<div data-picture="{kind}-', markup):
                        return name, _PICTURES[kind], mend_words(markup)
    raise CourseError(
        f"no lesson of the site has one of the pictures {', '.join(_PICTURES)}, of which its first"
        " page shows one."
    )


def _write_lesson(lesson: Lesson) -> str:
    minutes = " + ".join(map(str, lesson.sittings))
    if len(lesson.sittings) > 1:
        minutes = _("{minutes} minutes in {sittings} sittings").format(
            minutes=minutes, sittings=len(lesson.sittings)
        )
    else:
        minutes = _("{minutes} minutes").format(minutes=minutes)
    facts = _("{minutes}; {predictions}, {steps}").format(
        minutes=minutes,
        predictions=format_count(lesson.predictions, "prediction"),
        steps=format_count(lesson.steps, "step"),
        prediction_count=lesson.predictions,
        step_count=lesson.steps,
    )
    exercises = (
        _("; you write {exercises}").format(exercises=list_words(list_exercises(lesson)))
        if lesson.exercises
        else ""
    )
    return (
        f"**[{lesson.title}](notebooks/{lesson.name}.ipynb)**\n: {lesson.about}\n\n "
        f" *{facts}{exercises}{_('.')}*\n"
    )


def _write_guides(guides: Sequence[str]) -> str:
    lines = {
        "docs/setup.md": _(
            "Windows, macOS, hosted notebooks, a GPU, and what to do when a message stops you"
        ),
        "docs/commands.md": _("the grader and the measurements from a terminal"),
        "docs/glossary.md": _("the words and symbols of the course, each with what it means"),
        "docs/instructors.md": _(
            "to teach with the course: grade a class, read reports, know what to expect"
        ),
        "CONTRIBUTING.md": _(
            "to change the course: three commands, and three small changes from beginning to end"
        ),
        "docs/authoring.md": _(
            "what an exercise, a lesson, a picture, a kernel, a translation or a release needs"
        ),
        "docs/architecture.md": _("how the code is organized, and which part may import which"),
        "docs/kernels.md": _("which kernel takes which row, and why"),
        "docs/kernel-trials.md": _(
            "what each idea in the kernels was expected to bring, and what it brought"
        ),
        "docs/verdicts.md": _("what the grader says to each kind of mistake"),
        "docs/cpu-mode.md": _(
            "where Triton's interpreter differs from a GPU, and what the course corrects"
        ),
        "docs/site.md": _("how this site is made"),
        "docs/evidence.md": _(
            "how fast the kernels are, how the grader was tried, and what other courses do"
        ),
        "docs/browser.md": _(
            "the lessons with nothing installed: what a tab can do, and how to build one"
        ),
        "docs/grading-a-class.md": _(
            "what counts, what is written, and what becomes of files that cannot be read"
        ),
        "docs/security.md": _("how the grader confines code that a stranger handed in"),
    }
    items = "\n".join(
        f"- [](./{guide}){f': {lines[guide]}' if guide in lines else ''}" for guide in guides
    )
    return f"{_('## Guides: set-up, teaching, changing the course')}\n\n{items}\n"


def _write_contents(caption: str, entries: Sequence[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""])
