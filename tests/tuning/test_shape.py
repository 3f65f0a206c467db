"""What the course says about one shape, without a GPU, and with a stand-in for its clock."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import measurement, operations, timing
from course_lib.cli import bench
from course_lib.kernels import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from course_lib.kernels.launch.launcher import Launcher
from course_lib.lessons.figures.shape import times_by_length
from course_lib.tuning import shape
from course_lib.tuning.shape import MOST_COLUMNS, MOST_ROWS, make_report

LENGTHS = (1, 2, 15, 16, 17, 128, 1000, 1023, 1025, 2500, 4095, 4096, 5120, 8192, 9000, 12288,
    20000, 32767, 32768, 32769, 65536, 65537, 131073, MOST_COLUMNS)  # fmt: skip


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Reports measure nothing. They are made of shapes of any size, for many of which a GPU's
    memory has no room."""
    monkeypatch.setattr(course_lib, "MODE", "cpu")


@pytest.mark.parametrize("dtype", operations.DTYPES)
@pytest.mark.parametrize("norm", shape.NORMS)
def test_a_report_of_any_shape_has_ten_lines_or_fewer(dtype, norm):
    for N, M in itertools.product(LENGTHS, (1, 16, 1000, MOST_ROWS)):
        (text,) = bench.run("all", columns=str(N), rows=M, dtype=dtype, norm=norm, width=80)
        lines = text.split("\n")
        assert len(lines) <= 10 and max(map(len, lines)) <= 80, text


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize("norm", shape.NORMS)
def test_the_launch_of_a_report_is_the_one_that_the_kernels_get(monkeypatch, N, norm):
    """The course's functions are called with a launcher that notes what it is given."""
    made: list[dict] = []
    monkeypatch.setattr(
        Launcher, "__call__", lambda self, grid, *arguments: made.append(self._options)
    )
    M, dtype = 40, "fp16"
    x = torch.zeros(M, N, dtype=torch.float16)
    w = torch.zeros(N, dtype=torch.float16)
    mean = torch.zeros(M)
    forward, backward = make_report(N, M, dtype, norm).passes
    if norm == "layer_norm":
        layer_norm.layer_norm_forward(x, w, w, 1e-5)
        first, made[:] = list(made), []
        layer_norm_backward.layer_norm_backward(x, x, w, mean, mean)
    else:
        rms_norm.rms_norm_forward(x, w, 1e-5)
        first, made[:] = list(made), []
        rms_norm_backward.rms_norm_backward(x, x, w, mean)
    for one, launches in ((forward, first), (backward, made)):
        block, tail, warps = re.search(
            r"BLOCK (\d+)(?: \+ (\d+))?, (\d+) warp", one.launch
        ).groups()
        assert [
            e
            for e in launches
            if (e.get("BLOCK"), e.get("TAIL"), e["num_warps"])
            == (int(block), tail and int(tail), int(warps))
        ]
        if rows := re.search(r"(\d+) rows? per (?:program|tile)", one.launch):
            assert any(e.get("ROWS", 1) == int(rows[1]) for e in launches) or one.launch.startswith(
                "columns"
            )
        if chunks := re.search(r"(\d+) programs? per row", one.launch):
            assert any(e.get("CHUNKS") == int(chunks[1]) for e in launches)


def test_the_bytes_are_those_that_a_pass_has_to_move():
    forward, backward = make_report(4096, 8192, "fp32").passes
    assert (forward.moved, backward.moved) == (2 * 8192 * 4096 * 4, 3 * 8192 * 4096 * 4)


def test_the_floor_is_that_of_the_stored_passes_and_grows_with_the_bytes():
    forward, backward = make_report(4096, 8192, "fp16").passes
    for one in (forward, backward):
        assert one.stored and (one.stored.M, one.stored.N) == (8192, 4096)
        assert one.floor_us == pytest.approx(one.stored.floor_us, rel=0.03)
    floors = [make_report(4096, 2**power).passes[0].floor_us for power in range(0, 22)]
    assert floors == sorted(floors) and floors[0] > 1
    assert floors[-1] / floors[-2] == pytest.approx(2, rel=0.01), (
        "beyond what is stored, the bandwidth stays"
    )


def test_the_nearest_stored_time_is_of_this_dtype_and_names_its_run():
    near = make_report(262144, 1, "fp16", "rms_norm").passes[0].stored
    assert near and (near.M, near.N) == (1, 262144) and near.torch_us and near.torch_us > near.us
    assert (
        "H100" in near.device
        and near.date in make_report(262144, 1, norm="rms_norm").passes[0].write()[-1]
    )
    assert make_report(65536, 16, "bf16").passes[0].stored is None, (
        "no bf16 measurement has such long rows"
    )
    assert (
        make_report(1, 1).passes[0].stored is None
        and "none is stored" in make_report(1, 1).passes[0].write()[-1]
    )


def test_the_reason_is_that_of_the_table_or_of_the_exception():
    few, many = (make_report(65536, M).passes[1] for M in (16, 1024))
    assert few.launch.startswith("columns") and "too few" in few.why
    assert many.launch.startswith("split") and "once" in many.why


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"M": 0}, f"M, has to be from 1 to {MOST_ROWS}; you asked for 0"),
        ({"M": MOST_ROWS + 1}, "M, has to be"),
        ({"N": 0}, f"N, has to be from 1 to {MOST_COLUMNS}"),
        ({"N": MOST_COLUMNS + 1}, "N, has to be"),
        ({"dtype": "int8"}, "fp16, bf16, fp32"),
        ({"norm": "batch_norm"}, "layer_norm, rms_norm"),
    ],
)
def test_a_value_out_of_range_is_named_with_the_range(asked, words):
    with pytest.raises(CourseError, match=re.escape(words)):
        make_report(**({"N": 64, "M": 4} | asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": "64,128", "rows": 4},
        {"rows": 4},
        {"columns": "64", "norm": "rms_norm"},
        {"columns": "64", "rows": 4, "providers": "ours"},
    ],
)
def test_a_shape_is_one_row_length_with_its_rows_and_nothing_else(asked):
    with pytest.raises(CourseError, match=r"report of (a|one) shape"):
        list(bench.run("all", **asked))
    with pytest.raises(CourseError, match="no KIND"):
        list(bench.run("forward", columns="64", rows=4))


def test_without_stored_measurements_it_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BENCH_RESULTS", tmp_path)
    with pytest.raises(CourseError, match="no measurement of an H100 in fp16 is stored"):
        make_report(64, 4)


def test_a_device_without_this_dtype_gets_the_times_of_an_h100():
    assert {row["device"] for row in shape.read_times("NVIDIA H200", "fp16")} == {"NVIDIA H200"}
    assert all(
        "H100" in row["device"]
        for name in ("NVIDIA H200", "NVIDIA A100")
        for row in shape.read_times(name, "bf16")
    )


def test_on_a_gpu_the_times_of_now_stand_beside_the_floor_of_now(monkeypatch):
    monkeypatch.setattr(course_lib, "MODE", "gpu")
    monkeypatch.setattr(
        measurement,
        "new",
        lambda kind, method, versions=None: measurement.Measurement(
            kind, "Test GPU", "2026-01-02", {}, method, live=True
        ),
    )
    monkeypatch.setattr(timing, "device_us", lambda calls, replays=12: 3.0 if calls[0]() else 0.0)
    monkeypatch.setattr(operations, "floor_us", lambda op, inputs: 2.0)
    report = make_report(20, 3, "fp32")
    assert (
        report.device == "Test GPU"
        and [(one.us, one.torch_us, one.floor_us) for one in report.passes] == [(3.0, 3.0, 2.0)] * 2
    )
    assert "floor 2 us measured now, the course 3, PyTorch 3" in report.passes[0].write()[0]
    assert make_report(20, 3, "fp32", timed=False).measured is None, "--stored measures nothing"


def test_the_picture_marks_the_row_length():
    for N in (1, 4096, MOST_COLUMNS):
        (view,) = times_by_length(make_report(N, 8)).data["views"]
        for plot in view["panels"]:
            assert plot["levels"][1]["value"] == N and plot["x"]["low"] <= N <= plot["x"]["high"]
            assert [len(line["x"]) > 8 for line in plot["series"]] == [True, True]


def test_the_page_needs_no_network(tmp_path):
    list(bench.run("all", columns="4097", rows=8192, dtype="bf16", plot=tmp_path / "shape.html"))
    page = (tmp_path / "shape.html").read_text()
    assert "default-src 'none'" in page and set(re.findall(r"https?://[^\s\"'<]*", page)) == {
        "http://www.w3.org/2000/svg"
    }
    assert re.search(r"<p>Nearest: \d+ x 4097, \d", page)
