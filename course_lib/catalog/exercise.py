"""The exercises of the course, read from ``course_lib/exercises/<stem>/exercise.toml``. The stem is
that of the solution.

The stem says which exercise it is: ``ex07a_layer_norm_forward`` is exercise 07a of lesson 07.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import Translate, choose_language, translate
from course_lib.base.translation import gettext as _

KINDS = paths.list_kinds()
STEM = re.compile(r"ex(\d\d[a-z])_[a-z0-9_]+")
_FROM_THE_STEM = ("id", "lesson", "file")
# the types of fields, in words for an author
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "bool": "true or false",
    "tuple[str, ...]": "a list of texts",
    "Mapping[str, str]": "a table of texts",
}


@dataclass(frozen=True)
class Exercise:
    """The facts of one exercise. ``id``, ``lesson`` and ``file`` (its stem) come from the name of
    its folder.

    Attributes:
        kind: the form of the answer: "kernel" (Triton), functions in "torch" or "numpy" operations,
            "autograd" (the ``forward`` and ``backward`` of an autograd Function), or "tests"
            (functions that get a kernel and raise AssertionError if it is wrong).
        entry_points: the names of the kernels that the course launches, or of the functions that it
            calls.
        difficulty: 1 to 5.
        prerequisites: exercises, lessons, or things that a learner knows before the course.
        hints: three or more, each more direct than the last.
        stretch: a suggestion for further work after a pass.
        debrief: the harm that the avoided bug did elsewhere; shown after a pass.
        forbidden: words that the code must not contain, each with the reason that the verdict
            gives.
        short_path: whether the exercise belongs to the path of six hours, which ends with a model
            that trains with the learner's kernels.
        optional: whether the course asks nobody for it. It is checked as every exercise is, and
            counts nowhere.
    """

    id: str
    lesson: str
    file: str
    title: str
    objective: str
    kind: str
    entry_points: tuple[str, ...]
    difficulty: int
    minutes: int
    needs_gpu: bool
    prerequisites: tuple[str, ...]
    hints: tuple[str, ...]
    stretch: str
    debrief: str
    forbidden: Mapping[str, str] = field(default_factory=dict, hash=False)
    short_path: bool = False
    optional: bool = False

    @property
    def folder(self) -> Path:
        """The folder of what is true of this exercise alone."""
        return paths.EXERCISE_FOLDERS / self.file

    def list_right_ways(self) -> list[Path]:
        """Return the files of the other right solutions. An installed package has none."""
        return sorted((self.folder / "right").glob("*.py"))

    def translate(self, translate: Translate) -> Exercise:
        """Return the exercise with its words in another language."""
        return replace(
            self,
            title=translate(self.title), objective=translate(self.objective),
            hints=tuple(map(translate, self.hints)),
            stretch=translate(self.stretch), debrief=translate(self.debrief),
            forbidden={word: translate(reason) for word, reason in self.forbidden.items()},
        )  # fmt: skip


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise by id, in the order of the course, with its words in the chosen
    language.

    Raises: CourseError, with file and field, if a file of an exercise is wrong.
    """
    if choose_language() == "en":
        return read_catalog(paths.EXERCISE_FOLDERS)
    return {
        e.id: e.translate(partial(translate, catalog=f"lesson{e.lesson}"))
        for e in read_catalog(paths.EXERCISE_FOLDERS).values()
    }


def required() -> dict[str, Exercise]:
    """Return by id the exercises that the course asks for, which are all but the optional tasks, in
    the order of the course.

    Raises: CourseError, with file and field, if a file of an exercise is wrong.
    """
    return {name: exercise for name, exercise in exercises().items() if not exercise.optional}


def read_catalog(folder: Path) -> dict[str, Exercise]:
    """Return every exercise that has a folder in ``folder``, by id.

    Raises: CourseError, with file and field, if the name of a folder is not valid, if the file is
        no TOML, if a field is missing, unknown or of the wrong type, or if two folders have the
        same id.
    """
    by_id: dict[str, Exercise] = {}
    for file in sorted(folder.glob("*/exercise.toml")):
        exercise = read_exercise(file)
        if (earlier := by_id.get(exercise.id)) is not None:
            raise CourseError(
                f"{paths.shown(file)}: exercise {exercise.id} stands there twice, first in"
                f" {earlier.file}. Rename one."
            )
        by_id[exercise.id] = exercise
    return by_id


def read_exercise(file: Path) -> Exercise:
    """Read the facts of one exercise.

    Raises: CourseError, with file and field, if the file is not valid.
    """
    where = paths.shown(file)
    if (name := STEM.fullmatch(file.parent.name)) is None:
        raise CourseError(
            f"{where}: the name of an exercise's folder has the form exNNx_some_words, such as"
            " ex07a_layer_norm_forward."
        )
    where = f"{where}, exercise {name[1]}"
    try:
        entry = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{where}: it is not valid TOML: {error}.") from None
    expected_fields = {f.name: f for f in fields(Exercise) if f.name not in _FROM_THE_STEM}
    if unknown := sorted(entry.keys() - expected_fields.keys()):
        raise CourseError(
            f"{where}: there is no field {_list(unknown)}. There are {_list(expected_fields)}."
        )
    if missing := [
        key
        for key, f in expected_fields.items()
        if key not in entry and f.default is f.default_factory is MISSING
    ]:
        raise CourseError(f"{where}: missing field {_list(missing)}.")
    for key, value in entry.items():
        annotation = str(expected_fields[key].type)
        if not _has_type(value, annotation):
            raise CourseError(
                f"{where}, field {key}: it has to be {_WORDS[annotation]}, and is {value!r}."
            )
    if entry["kind"] not in KINDS:
        raise CourseError(f"{where}, field kind: {entry['kind']!r} is none of {', '.join(KINDS)}.")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Exercise(id=name[1], lesson=name[1][:2], file=file.parent.name, **values)


def get(exercise_id: str) -> Exercise:
    """Return the exercise with this id. "7a", "07A" and the name of the exercise file, with or
    without folders, all mean "07a".

    Raises: CourseError, with the ids that exist, if there is none.
    """
    wanted = next(
        (e.id for e in exercises().values() if e.file == Path(exercise_id).stem), exercise_id
    )
    wanted = wanted.strip().lower().removeprefix("ex").zfill(3)
    if wanted not in exercises():
        raise CourseError(
            _("there is no exercise {id!r}. There are: {ids}.").format(
                id=exercise_id, ids=", ".join(exercises())
            )
        )
    return exercises()[wanted]


def find(names: list[str]) -> list[Exercise]:
    """Find the exercises that are meant by ids, such as "07a", and by lessons' numbers, such as
    "07"; each of them once.

    The number of a lesson does not mean its optional task.

    Raises: CourseError if there is no exercise of a name.
    """
    exercises_found = {}
    for name in names:
        of_lesson = [exercise for exercise in required().values() if exercise.lesson == name]
        exercises_found |= {exercise.id: exercise for exercise in of_lesson or [get(name)]}
    return list(exercises_found.values())


def _has_type(value: Any, annotation: str) -> bool:
    match annotation:
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "tuple[str, ...]":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "Mapping[str, str]":
            return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    raise AssertionError(
        f"Exercise has a field of type {annotation}, which no exercise.toml can hold"
    )


def _list(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
