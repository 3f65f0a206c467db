"""The tables of launches: every row has a line, every line a source, and a new GPU needs nothing
but lines of its own."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch

import course_lib
from course_lib.base import paths
from course_lib.kernels.launch import choice, device, device_classes, tables
from course_lib.kernels.launch.device_classes import (
    DEVICE_CLASSES,
    H100,
    H200,
    DeviceClass,
    Line,
    make_lines,
)

TABLES = [
    field.name for field in dataclasses.fields(DeviceClass) if str(field.type).startswith("tuple")
]
HALF, BFLOAT, SINGLE = torch.float16, torch.bfloat16, torch.float32


def find_class(monkeypatch, bandwidth: float, dtype: torch.dtype) -> DeviceClass:
    monkeypatch.setattr(device, "find_bandwidth", lambda _: bandwidth)
    return choice.find_device_class(torch.empty((1, 1), dtype=dtype, device=course_lib.DEVICE))


def test_a_device_gets_the_tables_of_its_bandwidth_and_of_the_size_of_its_elements(monkeypatch):
    assert [
        find_class(monkeypatch, bandwidth, HALF).name for bandwidth in (0.0, 19.0, 25.4, 30.0, 37.2)
    ] == ["H100"] * 3 + ["H200"] * 2
    assert (
        find_class(monkeypatch, 37.2, BFLOAT) is H200
        and find_class(monkeypatch, 37.2, SINGLE) is H100
    )
    for tuned in DEVICE_CLASSES:
        found = find_class(
            monkeypatch, tuned.bandwidth, HALF if tuned.itemsize in (None, 2) else SINGLE
        )
        assert found is tuned, (
            f"{found.name} hides {tuned.name}: in DEVICE_CLASSES the class with the faster memory"
            " comes first"
        )


def test_a_new_gpu_is_a_class_with_lines_of_its_own_and_nothing_else(monkeypatch):
    """It takes its own lines first. Where it has none, it takes those of the class that it
    extends."""
    new = H200.extend(
        name="new", bandwidth=50.0, few_rows_bytes=1 << 20,
        forward=make_lines(dict(source="Forward", why="It has more registers."),
            dict(algorithm="split", above=1000, longest=1024, dtype=HALF)),
        backward=(Line(algorithm="columns", longest=100),),
        resident=(Line(longest=64, rows=64, num_warps=1),
            Line(above=4096, longest=8192, num_warps=32, centred=True)),
        split=(Line(longest=1024, block=512, num_warps=8, programs=2, unmasked=True),),
    )  # fmt: skip
    monkeypatch.setattr(device_classes, "DEVICE_CLASSES", (new, H200, H100))
    assert (
        find_class(monkeypatch, 40.0, HALF) is H200
        and find_class(monkeypatch, 60.0, SINGLE) is H100
    )
    assert find_class(monkeypatch, 60.0, HALF) is new

    x, short, long = (
        torch.empty((600, N), dtype=HALF, device=course_lib.DEVICE) for N in (1024, 64, 4096)
    )
    taken = [
        choice.choose_forward(one, None, centred=True, tuned=new)
        for one in (x, x[:2], long, x.bfloat16())
    ]
    assert taken == ["split", "few rows", "resident", "resident"]
    assert [choice.choose_backward(one, centred=False, tuned=new) for one in (short, x)] == [
        "columns",
        "persistent",
    ]
    assert tables.split(1024, HALF, centred=True, add=False, tuned=new) == (2, 512, 8, 2, True)
    assert tables.resident(64, tuned=new) == (64, 64, 1) and tables.resident(
        8192, tuned=new, centred=True
    ) == (1, 8192, 32)
    for N, centred in [(128, True), (8192, False), (20000, False)]:
        assert tables.resident(N, tuned=new, centred=centred) == tables.resident(
            N, tuned=H200, centred=centred
        )
    assert (
        tables.persistent(512, tuned=new)
        == tables.persistent(512, tuned=H200)
        != tables.persistent(512)
    )


@pytest.mark.parametrize("tuned", DEVICE_CLASSES, ids=lambda tuned: tuned.name)
def test_every_row_has_a_line_for_each_dtype_and_norm(tuned):
    limits = {
        "resident": 32768,
        "two_tiles": 32768,
        "persistent": 8192,
        "two_tiles_backward": 12288,
    }
    lengths = {
        N + d
        for power in range(22)
        for N in (1 << power, 3 << power, 5 << power)
        for d in (-16, -1, 0, 1, 16)
    }
    for table in TABLES:
        for N in lengths:
            for dtype in (
                (HALF, BFLOAT, SINGLE, torch.float64)
                if 1 <= N <= limits.get(table, 1 << 21)
                else ()
            ):
                for centred in (True, False):
                    line = device_classes.find_line(getattr(tuned, table), N, dtype, centred, False)
                    if table != "ahead":  # whose lines launch nothing
                        assert (
                            line.algorithm if table in ("forward", "backward") else line.num_warps
                        ), (table, N, dtype, line)


def test_a_table_without_a_line_for_a_row_says_so():
    with pytest.raises(LookupError, match="no line of a launch table takes 65 columns"):
        device_classes.find_line((Line(longest=64),), 65)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("tuned", DEVICE_CLASSES, ids=lambda tuned: tuned.name)
def test_every_line_has_a_source_that_is_there_and_every_choice_a_reason(tuned, table):
    sections = set(
        re.findall(
            r"^## (.+)$",
            (paths.ROOT / "docs" / "kernel-trials.md").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    results = {path.name for path in (paths.ROOT / "course_lib" / "bench" / "results").iterdir()}
    for line in getattr(tuned, table):
        assert line.source in sections | results, line
        assert line.why.endswith(".") or table not in ("forward", "backward"), line


@pytest.mark.parametrize("tuned", DEVICE_CLASSES, ids=lambda tuned: tuned.name)
def test_no_line_is_hidden_by_one_above_it(tuned):
    """Each line is the first that takes some row: else it would be a measurement that nothing
    uses."""
    lengths = {
        N + d
        for power in range(21)
        for N in (1 << power, 3 << power, 5 << power)
        for d in (-17, -16, -1, 0, 1, 16, 17)
    } | {66560, 133120}
    cases = [
        (N, dtype, centred, add)
        for N in lengths if N > 0 for dtype in (HALF, BFLOAT, SINGLE) for centred in (True,
            False) for add in (True, False)
    ]  # fmt: skip
    for table in TABLES:
        used = set()
        for case in cases:
            try:
                used.add(device_classes.find_line(getattr(tuned, table), *case))
            except LookupError:  # the algorithm does not take rows of this length
                assert case[0] > 8192
        lines = getattr(tuned, table)
        assert len(set(lines)) == len(lines), (
            f"{tuned.name}, {table}: a line stands twice; a class need not repeat what it extends"
        )
        inherited = {
            line
            for other in DEVICE_CLASSES[DEVICE_CLASSES.index(tuned) + 1 :]
            for line in getattr(other, table)
        }
        hidden = set(lines) - used - inherited
        assert not hidden, f"{tuned.name}, {table}: lines above take all rows of {hidden}"
