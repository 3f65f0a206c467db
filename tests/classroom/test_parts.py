"""An exercise whose parts stand for themselves gives a share of its points for each that is right,
from a verdict on hidden cases too."""

from __future__ import annotations

from course_lib import catalog
from course_lib.base import paths
from course_lib.classroom.checking import Request, check_request, grader_version
from course_lib.classroom.marking import give_points
from course_lib.classroom.record import Rules
from course_lib.sandbox import isolation


def test_each_bug_that_is_caught_has_its_share(tmp_path):
    exercise = catalog.exercises()["17a"]
    solved = (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")
    file = tmp_path / f"{exercise.file}.py"
    first = exercise.entry_points[0]
    head, _, rest = solved.partition(f"def {first}(")
    signature, _, body = rest.partition("\n")
    file.write_text(f"{head}def {first}({signature}\n    return\n{body}")
    verdict = check_request(
        Request(
            exercise.id,
            file.read_bytes(),
            b"a secret of this test",
            isolation.LIMITS,
            "cpu",
            grader_version(),
        )
    ).verdict
    assert verdict is not None and verdict["status"] == "fail"
    assert "seconds" not in verdict, "the points are given for what the journal keeps"
    parts = len(exercise.entry_points)
    assert (
        give_points(exercise, verdict, Rules())
        == int(100 * exercise.difficulty * (parts - 1) / parts) / 100
    )
    assert give_points(catalog.exercises()["01a"], verdict, Rules()) == 0
