"""The tutorial's published tables: whole, in order, as time, and an error that says what to do."""

from __future__ import annotations

import pytest

from course_lib.base.errors import CourseError
from course_lib.bench import published


@pytest.mark.parametrize("edition", published.EDITIONS)
def test_a_table_is_whole(edition):
    table = published.read_published(edition)
    assert [line.N for line in table] == list(range(1024, 16384, 512))
    assert all(60 < line.us(provider) < 800 for line in table for provider in ("triton", "torch"))


def test_gbps_become_a_time():
    line = published.Published("English", 1000, triton=100.0, torch=50.0)
    assert (
        line.us("triton")
        == pytest.approx(3 * 4096 * 1000 * 2 / 100e9 * 1e6)
        == line.us("torch") / 2
    )


def test_what_cannot_be_read_is_said(monkeypatch, tmp_path):
    with pytest.raises(CourseError, match="editions English, Chinese"):
        published.read_published("French")
    broken = tmp_path / "table.csv"
    broken.write_text("edition,N\nEnglish,1024\n")
    monkeypatch.setattr(published, "FILE", broken)
    with pytest.raises(CourseError, match="git checkout"):
        published.read_published()
