"""Lessons are short, ask before they tell, and say honestly how long they take."""

from __future__ import annotations

import re

import pytest

from course_lib import catalog
from course_lib.authoring.lesson_size import measure
from course_lib.authoring.notebooks import list_sources
from course_lib.base import paths

MOST_MINUTES = 40  # to the nearest five, as the titles say them
SIZES = [measure(source) for source in list_sources()]
# A lesson that has optional tasks alone is a capstone: it gives no guide.
GUIDED = {exercise.lesson for exercise in catalog.required().values()}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.lesson)
def test_a_lesson_is_short_and_says_how_long_it_takes(size):
    assert round(size.page_minutes) <= 25, (
        f"lesson {size.lesson}: the page alone takes {size.page_minutes:.0f} minutes, at most 25: cut it, or make a part a dive"
    )
    if size.exercise_minutes <= MOST_MINUTES / 2:  # exercises may take more; the page beside them does not
        assert 5 * round(size.minutes / 5) <= MOST_MINUTES, f"lesson {size.lesson} takes {size.minutes:.0f} minutes with its exercises"
    assert abs(size.said - size.minutes) <= 5, f"lesson {size.lesson} says {size.said} minutes and takes {size.minutes:.0f}"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.lesson)
def test_a_lesson_asks_and_lets_do(size):
    least_predictions, least_steps = (4, 2) if size.lesson in GUIDED else (1, 0)
    assert size.predictions >= least_predictions, (
        f"lesson {size.lesson} has {size.predictions} predictions; {least_predictions} at least have to be there"
    )
    assert size.steps >= least_steps, f"lesson {size.lesson} has {size.steps} steps; {least_steps} at least have to be there"
    assert size.longest_cell <= 15, f"a cell of lesson {size.lesson} has {size.longest_cell} lines; 15 at most"


def test_the_short_path_takes_six_hours_and_ends_with_the_learners_own_kernels():
    path = [exercise for exercise in catalog.exercises().values() if exercise.short_path]
    pages = sum(size.page_minutes for size in SIZES if size.lesson in {exercise.lesson for exercise in path})
    assert 330 <= pages + sum(exercise.minutes for exercise in path) <= 365
    assert {"08a", "11a", "13b", "14a"} <= {exercise.id for exercise in path}  # the norm of lesson 14 takes these kernels
    page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"◆ (\d\d[a-z])", page) == [exercise.id for exercise in path]


def test_what_counts(tmp_path):
    script = tmp_path / "98_some.py"
    parts = [
        "# %% [markdown]\n# # 98 Some\n# *About 12 minutes.* one two three",
        "# %%\nimport course_lib\n\nx = 1",
        '# %% tags=["check"]\nassert x == 1',
        '# %% tags=["answer"]\nprint(x)',
        '# %% tags=["step"]\n# BEGIN SOLUTION\n#: Make three.\nx = 3\n# END SOLUTION\nstep("98-three")',
        '# %% [markdown] tags=["dive"]\n# ## Dive: deep\n# many words',
        "# %% [markdown]\n# ### Deeper\n# and more",
        "# %%\nfor n in range(3):\n    print(n)",
        "# %% [markdown]\n# ## Up again\n# four",
    ]
    script.write_text("\n\n".join(parts))
    size = measure(script)
    assert (size.lesson, size.said, size.steps, size.dives, size.predictions) == ("98", 12, 1, 1, 0)
    assert size.words == len("# 98 Some *About 12 minutes.* one two three ## Up again four".split())
    assert (size.code_lines, size.longest_cell) == (4, 2)
    assert size.page_minutes == size.minutes == size.words / 150 + 2
