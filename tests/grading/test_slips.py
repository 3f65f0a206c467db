"""Slips: wrong solutions as learners write them, from the text of an exercise alone. None may pass.

The whole corpus takes some minutes, so a run takes about every fourth slip, always the same ones, and none that is known to pass: a
pass costs the most. COURSE_ALL_SLIPS=1 takes all. Each slip is a test by itself, so ``-n`` spreads them over workers.
"""

from __future__ import annotations

import hashlib
import os
import tomllib

import pytest

from course_lib import catalog
from course_lib.authoring.mutants import make_text
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import Exercise
from course_lib.grading.check import check
from course_lib.grading.verdict import ERROR, FAIL

FOLDER = paths.ROOT / "tests" / "slips"
ALL = os.environ.get("COURSE_ALL_SLIPS") == "1"
EVERY = 4

# slips that pass: why no case shows them. One that is refused after all fails its test, so that it leaves the table.
KNOWN: dict[str, str] = {
    "00a:nan_becomes_zero": "no case copies a NaN",
    "02a:dx_in_dtype_of_dy": "in no case has dy another dtype than x",
    "02b:dx_in_dtype_of_dy": "in no case has dy another dtype than x",
    "02b:dy_in_dtype_of_x": "in no case has dy another dtype than x",
    "08a:dx_in_dtype_of_dy": "in no case has dy another dtype than x",
    "08a:dy_rounded_to_dtype_of_x": "in no case has dy another dtype than x",
    "08b:dx_in_dtype_of_dy": "in no case has dy another dtype than x",
    "09c:dx_in_dtype_of_dy": "in no case has dy another dtype than x",
    "06a:y_rounded_to_dtype_of_x": "in no case has y another dtype than x",
    "06b:y_rounded_to_dtype_of_x": "in no case has y another dtype than x",
    "07a:y_rounded_to_dtype_of_x": "in no case has y another dtype than x",
    "07a:y_rounded_to_dtype_of_w": "in no case has w fewer digits than the output",
    "08b:dx_in_dtype_of_w": "in no case has w fewer digits than the output",
    "07b:rounded_to_dtype_of_x": "in no case has total another dtype than x and y",
    "07b:rounded_to_dtype_of_y": "in no case has total another dtype than x and y",
    "07b:added_in_dtype_of_x": "in no case has total another dtype than x and y",
    "09b:db_in_dtype_of_dw": "in no case has db another dtype than dw",
    "08a:columns_of_dy_in_32_bits": "in no case does column * stride_dy_col pass 2^31",
    "08b:columns_of_dy_in_32_bits": "in no case does column * stride_dy_col pass 2^31",
    "09b:columns_of_dy_in_32_bits": "in no case does column * stride_dy_col pass 2^31",
    "09c:columns_of_dy_in_32_bits": "in no case does column * stride_dy_col pass 2^31",
    "04a:row_in_uint32": "in no case does row * stride_x pass 2^32",
    "05a:row_in_uint32": "in no case does row * stride_x pass 2^32",
    "04a:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "04a:cleared_by_a_product": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "05a:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "05b:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "06a:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "06b:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "07a:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "07b:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "08a:weight_without_other": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "08b:other_forgotten": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "09b:statistics_without_other": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "09c:statistics_without_other": "lanes without `other` hold 0 here; lesson 00 calls them undefined",
    "03c:all_empty_only": "in every case all merges are of one sort: all have an empty side, or none has",
    "03c:empty_b_returns_a_for_all": "in every case all merges are of one sort: all have an empty side, or none has",
    "03c:empty_side_decides_for_all": "in every case all merges are of one sort: all have an empty side, or none has",
    "03c:no_empty_a": "in every case all merges are of one sort: all have an empty side, or none has",
    "03c:denominator_moved_by_an_eps": "no case merges a few numbers whose mean must be right to the last digits",
    "05b:denominator_moved_by_an_eps": "var is off by 7e-6 of itself, which the allowed error covers",
    "03a:one_pass_by_two_pass": "how often one_pass sweeps over x is not looked at",
    "09a:scope_of_a_block": "the scope of an atomic operation is not looked at",
    "09a:taken_in_a_block": "the scope of an atomic operation is not looked at",
    "09b:chunks_of_128_rows": "no case has a chunk of more than 128 rows",
    "09c:at_most_eight_tiles": "no case has more than eight tiles a program",
    "10a:dw_in_fp32": "autograd converts a gradient to the dtype of its tensor, so nothing shows",
}


def _read(exercise: Exercise) -> list[dict]:
    return tomllib.loads((FOLDER / f"ex{exercise.id}.toml").read_text(encoding="utf-8"))["slip"]


SLIPS = {f"{e.id}:{entry['id']}": (e, entry) for e in catalog.exercises().values() for entry in _read(e)}


def _is_in_sample(name: str) -> bool:
    return ALL or (name not in KNOWN and hashlib.sha256(name.encode()).digest()[0] % EVERY == 0)


def _params() -> list:
    return [
        pytest.param(
            *SLIPS[name],
            id=name,
            marks=[pytest.mark.xfail(reason=KNOWN[name], raises=AssertionError, strict=True)] if name in KNOWN else [],
        )
        for name in SLIPS
        if _is_in_sample(name)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "entry"), _params())
def test_slip_is_refused(exercise, entry, tmp_path):
    file = tmp_path / f"{exercise.file}.py"
    file.write_text(entry.get("code") or make_text(exercise, entry, FOLDER), encoding="utf-8")
    verdict = check(exercise, file)
    assert verdict.status in (FAIL, ERROR), f"{entry['what']} {entry['shows']}\n{verdict.message}"


@pytest.mark.parametrize("exercise", catalog.exercises().values(), ids=lambda e: e.id)
def test_every_slip_is_whole(exercise):
    entries = _read(exercise)
    assert len({entry["id"] for entry in entries}) == len(entries) >= 8
    for entry in entries:
        fields = {"id", "what", "shows", "names", "code" if "code" in entry else "edits"}
        assert entry.keys() == fields and all(entry.values()), entry["id"]
        compile(entry.get("code") or make_text(exercise, entry, FOLDER), entry["id"], "exec")


def test_an_edit_that_no_longer_fits_names_its_file():
    exercise = catalog.get("06a")
    with pytest.raises(CourseError, match=r"tests/slips/ex06a\.toml, lost: 'no such text' stands 0 times"):
        make_text(exercise, {"id": "lost", "edits": [["no such text", ""]]}, FOLDER)


def test_known_slips_exist():
    assert KNOWN.keys() <= SLIPS.keys()
