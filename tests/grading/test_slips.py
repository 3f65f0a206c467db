"""Slips: wrong solutions as learners write them, from the text of an exercise alone. None may pass.
And right ones in unusual forms: all do.

The whole corpus takes some minutes, so `make test` takes about every fourth slip and right
solution, and `make sweep` the others with those that are known to pass.

A slip whose text is that of a mutant names the mutant: test_grading.py has it refused, with its
cause.
"""

from __future__ import annotations

import hashlib

import pytest

from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.catalog import edits, mutants
from course_lib.grading.check import check
from course_lib.grading.verdict import ERROR, FAIL

EVERY = 4

# slips that pass: why no case shows them. One that is refused after all fails its test, so that it
# leaves the table.
KNOWN: dict[str, str] = {
    "05b:denominator_moved_by_an_eps": (
        "var is off by 7e-6 of itself, which the allowed error covers"
    ),
    "03a:one_pass_by_two_pass": (
        "how often one_pass sweeps over x is not looked at, and its numbers are better than asked"
    ),
    "14a:dw_in_fp32": "autograd converts a gradient to the dtype of its tensor, so nothing shows",
}


SLIPS = {
    f"{exercise.id}:{entry['id']}": (exercise, entry)
    for exercise in catalog.exercises().values()
    for entry in edits.read_entries(edits.find_slips(exercise), "slip")
    if "mutant" not in entry
}


def _list_marks(name: str) -> list[pytest.MarkDecorator]:
    if name in KNOWN:
        return [
            pytest.mark.sweep,
            pytest.mark.xfail(reason=KNOWN[name], raises=AssertionError, strict=True),
        ]
    return [pytest.mark.sweep] if hashlib.sha256(name.encode()).digest()[0] % EVERY else []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "entry"),
    [pytest.param(*SLIPS[name], id=name, marks=_list_marks(name)) for name in SLIPS],
)
def test_slip_is_refused(exercise, entry, tmp_path):
    file = tmp_path / f"{exercise.file}.py"
    text = edits.edit_solution(exercise, entry, edits.find_slips(exercise))
    file.write_text(text, encoding="utf-8")
    verdict = check(exercise, file)
    assert verdict.status in (FAIL, ERROR), f"{entry['what']} {entry['shows']}\n{verdict.message}"


RIGHT = [
    pytest.param(exercise, text, id=name, marks=_list_marks(name))
    for exercise in catalog.exercises().values()
    for name, text in edits.read_variants(exercise).items()
]


@pytest.mark.slow
@pytest.mark.usefixtures("recall_compilations")
@pytest.mark.parametrize(("exercise", "text"), RIGHT)
def test_what_is_right_in_an_unusual_form_passes(exercise, text, tmp_path):
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(text, encoding="utf-8")
    verdict = check(exercise, file)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_every_slip_is_whole(exercise):
    known = {entry["id"] for entry in mutants.read_mutants(exercise)}
    for kind, fields, least in (
        ("slip", {"id", "what", "shows", "names"}, 8),
        ("right", {"id", "what"}, 0),
    ):
        file = edits.find_slips(exercise)
        entries = edits.read_entries(file, kind)
        # An exercise that is younger than the collection has no file: its author had not read the
        # grader, and who has read it adds nothing.
        assert len({entry["id"] for entry in entries}) == len(entries)
        assert len(entries) >= least or not file.exists()
        for entry in entries:
            assert entry.keys() == fields | {"mutant" if "mutant" in entry else "edits"} and all(
                entry.values()
            ), entry["id"]
            if "mutant" in entry:
                assert kind == "slip" and entry["mutant"] in known, (
                    f"{entry['id']}: {exercise.file}/wrong.toml has no {entry['mutant']}"
                )
            else:
                text = edits.edit_solution(exercise, entry, edits.find_slips(exercise))
                compile(text, entry["id"], "exec")


def test_an_edit_that_no_longer_fits_names_its_file():
    exercise, lost = catalog.get("07a"), {"id": "lost", "edits": [["no such text", ""]]}
    with pytest.raises(
        CourseError,
        match=r"ex07a_layer_norm_forward/slips\.toml, lost: 'no such text' stands 0 times",
    ):
        edits.edit_solution(exercise, lost, edits.find_slips(exercise))


def test_known_slips_exist():
    assert KNOWN.keys() <= SLIPS.keys()
