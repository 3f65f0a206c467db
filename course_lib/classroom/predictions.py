"""A learner's predictions in the lessons, read from a progress file that was handed in, and the
questions of the lessons."""

from __future__ import annotations

import functools
import json
import tomllib

from course_lib.base import paths

_MOST_BYTES = 1 << 20
_LESSONS = paths.PACKAGE / "lessons"


def read_surprises(data: bytes) -> dict[str, bool] | None:
    """Return for each prediction of a progress file, by id, whether the answer surprised the
    learner; None if ``data`` is no such file.

    Only questions of the course count.
    """
    if len(data) > _MOST_BYTES:
        return None
    try:
        predictions = json.loads(data)["predictions"]
        surprises = {
            name: answer["surprised"]
            for name, answer in predictions.items()
            if name in list_questions()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {name: surprised for name, surprised in surprises.items() if isinstance(surprised, bool)}


@functools.cache
def list_questions() -> dict[str, str]:
    """Return every question of the lessons, by id, in the order of the course."""
    questions = {}
    for file in sorted(_LESSONS.glob("lesson*/predictions.toml")):
        for entry in tomllib.loads(file.read_text(encoding="utf-8")).get("prediction", []):
            questions[entry["id"]] = entry["question"]
    return questions
