"""Lessons are short, ask before they tell, and say honestly how long they take."""

from __future__ import annotations

import ast
import builtins
import re

import pytest

from course_lib import catalog
from course_lib.authoring.lesson_size import measure
from course_lib.authoring.notebooks import ANSWER, MINUTES, list_sources, read_source
from course_lib.base import paths

MOST_MINUTES = 40  # to the nearest five, as the titles say them
SIZES = [size for source in list_sources() for size in measure(source)]
# A lesson that has optional tasks alone is a capstone: it gives no guide.
GUIDED = {exercise.lesson for exercise in catalog.required().values()}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.lesson}-{size.sitting}")
def test_a_lesson_is_short_and_says_how_long_it_takes(size):
    assert round(size.page_minutes) <= 25, (
        f"lesson {size.lesson}: the page alone takes {size.page_minutes:.0f} minutes, at most 25:"
        " cut it, or make a part a dive"
    )
    # exercises may take more; the page beside them does not
    if size.exercise_minutes <= MOST_MINUTES / 2:
        assert 5 * round(size.minutes / 5) <= MOST_MINUTES, (
            f"lesson {size.lesson} takes {size.minutes:.0f} minutes with its exercises"
        )
    assert abs(size.said - size.minutes) <= 5, (
        f"lesson {size.lesson} says {size.said} minutes and takes {size.minutes:.0f}"
    )


@pytest.mark.parametrize("lesson", sorted({size.lesson for size in SIZES}))
def test_a_lesson_asks_and_lets_do(lesson):
    sizes = [size for size in SIZES if size.lesson == lesson]
    predictions, steps = sum(size.predictions for size in sizes), sum(size.steps for size in sizes)
    least_predictions, least_steps = (4, 2) if lesson in GUIDED else (1, 0)
    assert predictions >= least_predictions, (
        f"lesson {lesson} has {predictions} predictions; {least_predictions} at least have to be"
        " there"
    )
    assert steps >= least_steps, (
        f"lesson {lesson} has {steps} steps; {least_steps} at least have to be there"
    )
    assert all(size.longest_cell <= 15 for size in sizes), (
        f"a cell of lesson {lesson} has more than 15 lines"
    )


@pytest.mark.parametrize(
    "size",
    [size for size in SIZES if size.sitting > 1],
    ids=lambda size: f"{size.lesson}-{size.sitting}",
)
def test_a_further_sitting_has_its_own_exercise_and_reading_and_needs_no_cell_of_the_one_before(
    size,
):
    assert size.exercise_minutes and size.minutes <= MOST_MINUTES
    (source,) = (source for source in list_sources() if source.name.startswith(size.lesson))
    cells = read_source(source).cells
    sittings = [
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "markdown" and MINUTES.search(cell.source)
    ]
    assert sum("**Where to read on**" in cell.source for cell in cells) == len(sittings)
    own = [
        cell.source
        for cell in cells[sittings[size.sitting - 1] :]
        if cell.cell_type == "code" and ANSWER not in cell.metadata.get("tags", [])
    ]
    nodes = [node for text in own for node in ast.walk(ast.parse(text))]
    bound = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | {
        node.arg for node in nodes if isinstance(node, ast.arg)
    }
    bound |= {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    } | set(dir(builtins))
    assert {node.id for node in nodes if isinstance(node, ast.Name)} <= bound


def test_the_short_path_takes_six_hours_and_ends_with_the_learners_own_kernels():
    path = [exercise for exercise in catalog.exercises().values() if exercise.short_path]
    pages = sum(
        size.page_minutes for size in SIZES if size.lesson in {exercise.lesson for exercise in path}
    )
    assert 330 <= pages + sum(exercise.minutes for exercise in path) <= 365
    # the norm of lesson 14 takes these kernels
    assert {"08a", "11a", "13b", "14a"} <= {exercise.id for exercise in path}
    page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"◆ (\d\d[a-z])", page) == [exercise.id for exercise in path]


def test_what_counts(tmp_path):
    script = tmp_path / "98_some.py"
    parts = [
        "# %% [markdown]\n# # 98 Some\n# *About 12 minutes.* one two three",
        "# %%\nimport course_lib\n\nx = 1",
        '# %% tags=["check"]\nassert x == 1',
        '# %% tags=["answer"]\nprint(x)',
        (
            '# %% tags=["step"]\n# BEGIN SOLUTION\n#: Make three.\nx = 3\n# END'
            ' SOLUTION\nstep("98-three")'
        ),
        '# %% [markdown] tags=["dive"]\n# ## Dive: deep\n# many words',
        "# %% [markdown]\n# ### Deeper\n# and more",
        "# %%\nfor n in range(3):\n    print(n)",
        "# %% [markdown]\n# ## Up again\n# four",
    ]
    script.write_text("\n\n".join(parts))
    (size,) = measure(script)
    assert (size.lesson, size.said, size.steps, size.dives, size.predictions) == ("98", 12, 1, 1, 0)
    assert size.words == len("# 98 Some *About 12 minutes.* one two three ## Up again four".split())
    assert (size.code_lines, size.longest_cell) == (4, 2)
    assert size.page_minutes == size.minutes == size.words / 150 + 2


def test_a_page_that_names_its_minutes_twice_has_two_sittings(tmp_path):
    script = tmp_path / "98_some.py"
    parts = [
        "# %% [markdown]\n# # 98 Some\n# *About 12 minutes.*",
        '# %%\npredict("15-climb")',
        '# %%\nexercise("15a")',
        '# %% [markdown] tags=["dive"]\n# ## Dive: deep\n# many words',
        "# %% [markdown]\n# ## More\n#\n# *About 7 minutes.* one two",
        '# %%\nexercise("15b")',
    ]
    script.write_text("\n\n".join(parts))
    first, second = measure(script)
    assert (first.sitting, first.said, first.predictions, first.dives) == (1, 12, 1, 1)
    assert (second.sitting, second.said, second.predictions, second.dives) == (2, 7, 0, 0)
    assert [size.exercise_minutes for size in (first, second)] == [
        catalog.get(name).minutes for name in ("15a", "15b")
    ]
    assert second.words == len("## More *About 7 minutes.* one two".split())
