"""The statistics of rows that enter norms: what is measured of them, and what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from course_lib.authoring.norm_inputs import describe_rows
from course_lib.lessons.figures.norm_inputs import QUANTILES, read_norm_inputs


def test_rows_are_described_by_their_mean_their_size_and_their_largest_column():
    found = describe_rows("model", "norm 1", np.array([[1.0, 3], [-4, -6], [1, -1]]))
    assert (found.M, found.N) == (3, 2)
    assert [found.mean_over_std[place] for place in (0, 3, 6)] == [0, 2, 5]
    assert [found.rms[place] for place in (0, 3, 6)] == [1, 2.24, 5.1]
    assert found.largest_column == pytest.approx(46**0.5 / ((18**0.5 + 46**0.5) / 2), rel=5e-3)


def test_what_is_stored_has_every_norm_once_with_its_quantiles_in_order():
    stored = read_norm_inputs()
    assert len({(norm.model, norm.norm) for norm in stored.norms}) == len(stored.norms)
    for norm in stored.norms:
        for quantiles in (norm.mean_over_std, norm.rms):
            assert len(quantiles) == len(QUANTILES) and quantiles == sorted(quantiles)
    assert all(
        stored.of(package["model"]) and package["version"] and package["licence"]
        for package in stored.packages
    )
