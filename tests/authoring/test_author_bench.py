"""The measurements of the authors: goals, the plane of shapes, and the hardware's counters, without
a GPU."""

from __future__ import annotations

import pytest

import course_lib
from course_lib.authoring import bench
from course_lib.authoring.bench import counters, field, goals, plane, profile
from course_lib.base.errors import CourseError
from course_lib.bench import backward, forward, long_rows, measurement
from course_lib.bench.grid import Shape
from course_lib.bench.operations import OPERATIONS


@pytest.fixture
def no_gpu(monkeypatch):
    """Measurements start as on a GPU."""

    def new(kind, method, versions=None):
        return measurement.Measurement(
            kind, "Test GPU", "2026-01-02", {"torch": "x"} | (versions or {}), method, live=True
        )

    monkeypatch.setattr(measurement, "new", new)


@pytest.mark.parametrize(
    ("op", "M", "N", "limit"),
    [
        ("layer_norm", 131072, 256, 1.01 + 1 / 50),
        ("layer_norm_backward", 4096, 8192, 1.05 + 1 / 50),
        ("rms_norm", 2048, 16384, 1.01),
        ("rms_norm_backward", 8194, 4095, 1.2),
        ("layer_norm_backward", 6553, 5120, 1.3),
        ("layer_norm_backward", 2730, 12288, 1.15),
        ("rms_norm_backward M=many", 512, 65536, 1.10),
        ("add_layer_norm", 1024, 32768, 1.05),
        ("layer_norm M=many", 256, 262144, 1.05),
        ("rms_norm M=16", 16, 262144, 1.3),
        ("rms_norm M=1", 1, 262144, 2.5),
        ("rms_norm_backward M=16", 16, 262144, None),
        ("layer_norm M=16", 16, 65536, None),
        ("layer_norm", 100, 777, None),
    ],
)
def test_the_goal_of_a_shape(op, M, N, limit):
    assert goals.goal(op, M, N, floor=50.0) == limit


def rows(op, M, N, **times):
    return [
        {
            "op": op,
            "provider": name,
            "M": M,
            "N": N,
            "dtype": "fp16",
            "us": 10.0,
            "gbps": 1,
            "over_floor": time,
        }
        for name, time in times.items()
    ]


def test_the_table_against_the_goals_names_the_best_peer():
    result = measurement.Measurement("forward", "Test GPU", "2026-01-02", {}, "")
    result.rows += rows("layer_norm", 32768, 1024, ours=1.01, blocked=0.9, torch=1.6, quack=1.0)
    result.rows += rows("layer_norm", 2048, 16384, ours=1.05, torch=1.6, liger=1.02)
    result.rows += rows("layer_norm", 10, 777, ours=1.2)
    result.rows += rows("rms_norm", 32768, 1024, torch=1.1)
    shapeless, first, last = goals.compare_with_goals(result)
    assert first["goal"] == pytest.approx(1.01 + goals.LAUNCH_US / 10.0)
    assert (first["peer"], first["met"], first["ahead"]) == ("quack", True, True)
    assert (last["peer"], last["met"], last["ahead"]) == ("liger", False, False) and last[
        "to_peer"
    ] == pytest.approx(1.05 / 1.02)
    assert (shapeless["goal"], shapeless["met"], shapeless["peer"], shapeless["ahead"]) == (
        None,
        None,
        None,
        None,
    )
    text = goals.table(result)
    assert "MISSED" in text and "BEHIND" in text and "quack 1.00" in text
    assert "1 of 2 goals met; level with the best peer, or ahead, at 1 of 2 shapes" in text


def test_the_grids_have_every_row_length_of_the_goals():
    grids = [module.GRID for module in (forward, backward, long_rows)]
    swept = [
        (op, shape)
        for grid in grids
        for sweep in grid.sweeps
        for shape in sweep.shapes(grid.columns)
        for op in sweep.operations
    ]
    wanted = {
        (op, name)
        for op, limits in goals.GOALS.items()
        for name, limit in zip(goals.CLASSES, limits, strict=True)
        if limit
    }
    assert set(goals.GOALS) == set(OPERATIONS) and wanted <= {
        (op, goals.shape_class(shape.M, shape.N)) for op, shape in swept
    }


@pytest.mark.parametrize(
    "kind", ["forward", "backward", "long_rows", "field", "field_bf16", "field_fp32"]
)
def test_a_stored_measurement_is_compared_with_the_goals(kind):
    text = goals.table(measurement.stored(kind))
    assert (
        "against the goals" in text
        and "goals met" in text
        and max(map(len, text.splitlines())) <= 80
    )


@pytest.mark.parametrize("module", [plane, counters, profile, field])
def test_what_is_stored_is_shown_and_what_cannot_be_measured_is_said(module, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "--stored"])
    bench.run_as_script(module.KIND, module.measure, module.table)
    printed = capsys.readouterr().out
    assert (
        printed.startswith(measurement.stored(module.KIND).label())
        and len(printed.splitlines()) > 10
    )
    monkeypatch.setattr("sys.argv", ["bench"])
    if course_lib.MODE == "cpu":
        with pytest.raises(SystemExit, match="measuring needs a GPU"):
            bench.run_as_script(module.KIND, module.measure, module.table)


def test_a_cliff_is_dearer_than_the_shapes_beside_it_and_a_slope_is_none():
    costs = {
        (1, 8): 1.0,
        (1, 64): 1.3,
        (1, 512): 1.6,
        (16, 8): 1.1,
        (16, 64): 9.0,
        (16, 512): 1.7,
        (256, 8): 1.2,
        (256, 64): 1.4,
    }
    result = measurement.Measurement("plane", "Test GPU", "2026-01-02", {}, "")
    result.rows = [
        {
            "op": op,
            "provider": "ours",
            "M": M,
            "N": N,
            "dtype": "fp16",
            "us": 1.0,
            "gbps": 1,
            "over_floor": cost,
        }
        for op in ("layer_norm", "rms_norm")
        for (M, N), cost in (costs if op == "layer_norm" else costs | {(16, 64): 1.4}).items()
    ]
    ((row, times),) = plane.find_cliffs(result)
    assert (row["op"], row["M"], row["N"]) == ("layer_norm", 16, 64) and times == pytest.approx(
        9 / 1.35
    )
    text = plane.table(result)
    assert (
        "16 shapes, 1 cost over 1.5 times" in text
        and "layer_norm 16 x 64: 9.00 of the floor, 6.67 times" in text
    )


def test_the_plane_has_aligned_and_unaligned_rows_and_fits_a_small_gpu():
    shapes = [(s.M, s.N) for sweep in plane.GRID.sweeps for s in sweep.shapes(plane.COLUMNS)]
    assert len(shapes) == len(set(shapes)) > 100 and max(M * N for M, N in shapes) <= plane.ELEMENTS
    assert {M for M, _ in shapes} == set(plane.ROWS) and {N for _, N in shapes} == set(
        plane.COLUMNS
    )


CSV = """==PROF== Connected to process 1
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes_read.sum","dram__bytes_write.sum",{rest}
"","","us","Mbyte","Kbyte",{units}
"0","void at::cuda::spin_kernel(long)","1","0","0",{zeros}
"1","layer_norm_kernel","1,500.5","67.1","2,048",{ones}
"2","column_sums_kernel","2","1","1",{ones}
"3","void at::cuda::spin_kernel(long)","1","0","0",{zeros}
"""


def profiled() -> str:
    rest = [
        name
        for name in (*counters._COUNTERS.values(), *map(counters._STALL.format, counters._STALLS))
        if name not in CSV
    ]
    line = ",".join
    return CSV.format(
        rest=line(f'"{name}"' for name in rest),
        units=line('"%"' for _ in rest),
        zeros=line('"0"' for _ in rest),
        ones=line(f'"{k}.25"' for k in range(len(rest))),
    )


def test_counters_are_read_call_by_call_in_one_unit():
    first, second = counters.parse_counters(profiled())
    assert [kernel["kernel"] for kernel in first] == [
        "layer_norm_kernel",
        "column_sums_kernel",
    ] and second == []
    assert (first[0]["us"], first[0]["read_mb"], first[0]["written_mb"]) == (1500.5, 67.1, 2.0)
    waits = list(first[0]["stalls"].values())
    assert waits == sorted(waits, reverse=True) and set(first[0]["stalls"]) == set(counters._STALLS)
    assert list(counters.parse_counters("==PROF== nothing was profiled")) == []
    with pytest.raises(KeyError):
        list(counters.parse_counters(profiled().replace('"Mbyte"', '"furlong"')))


def test_a_step_is_summarised_with_its_gaps_and_what_overlaps_counts_once():
    kernels = [
        ("at::native::multi_tensor_apply_kernel", 260.0, 300.0),
        ("nvjet_hsh_128x256", 100.0, 150.0),
        ("layer_norm_kernel", 151.0, 180.0),
        ("column_sums_kernel", 170.0, 200.0),  # starts while the kernel before it ends
        ("elementwise_kernel", 190.0, 195.0),  # another stream, within the kernel before it
        ("flash_fwd_kernel", 201.0, 210.0),
        ("layer_norm_kernel", 240.0, 250.0),  # behind a gap of 30 us
    ]
    told = profile.summarise(kernels)
    assert told["pieces"] == [
        [0.0, 0.05, "matmul"],
        [0.051, 0.1, "norm"],
        [0.09, 0.095, "other"],
        [0.101, 0.11, "attention"],
        [0.14, 0.15, "norm"],
        [0.16, 0.2, "optimizer"],
    ]
    assert told["kinds"] == {
        "attention": 0.009,
        "matmul": 0.05,
        "norm": 0.059,
        "optimizer": 0.04,
        "other": 0.005,
    }
    assert (told["span_ms"], told["idle_ms"], told["kernels"]) == (0.2, 0.042, 7)


def test_every_row_of_the_profile_adds_up_and_has_a_line():
    stored = measurement.stored("profile")
    lines = profile.table(stored).splitlines()
    assert len(lines) == 2 + len(stored.rows) == 2 + 2 * 2 * 2 * 3
    for row, line in zip(stored.rows, lines[2:], strict=True):
        assert line.split()[:4] == [row["size"], row["norm"], row["provider"], row["mode"]]
        assert f"{row['ms']:.2f}" in line.split() and f"{row['kinds']['norm']:.2f}" in line.split()
        busy = row["span_ms"] - row["idle_ms"]
        assert (
            busy <= sum(row["kinds"].values()) <= row["span_ms"]
            and row["pieces"][-1][1] == row["span_ms"]
        )


def ncu(folder, script: str) -> None:
    (folder / "ncu").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "ncu").chmod(0o755)


def test_counters_come_from_the_profiler_on_the_path(no_gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "out").write_text(profiled(), encoding="utf-8")
    ncu(tmp_path, f'cat "{tmp_path}/out"')
    cases = [("layer_norm", Shape(8, 16)), ("rms_norm", Shape(8, 16))]
    taken = counters.measure(cases)
    assert [(row["op"], row["kernel"]) for row in taken.rows] == [
        ("layer_norm", "layer_norm_kernel"),
        ("layer_norm", "column_sums_kernel"),
    ]
    assert "\n  column_sums " in counters.table(taken) and "8 x 16" in counters.table(taken)
    for asked, script, said in [
        (cases[:1], f'cat "{tmp_path}/out"', "after 2 of 1 cases"),
        (cases, "echo ERR_NVGPUCTRPERM; exit 1", "administrator"),
        (cases, "echo broken >&2; exit 3", "exit code 3, after 0 of 2 cases(.|\n)*broken"),
    ]:
        ncu(tmp_path, script)
        with pytest.raises(counters.NoProfiler, match=said):
            counters.measure(asked)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(counters.NoProfiler, match="no `ncu` on the PATH"):
        counters.measure(cases)
    with pytest.raises(CourseError, match="no operation 'sideways'"):
        counters.measure([("sideways", Shape(1, 1))])
