"""`course bench` without a GPU: what is timed and with whom, values checked first, every reason
kept, tables and pictures."""

from __future__ import annotations

import importlib.machinery
import itertools
import json
import math
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import (
    backward,
    forward,
    grid,
    host,
    long_rows,
    measurement,
    operations,
    providers,
    summary,
    tables,
    timing,
)
from course_lib.bench.grid import Shape
from course_lib.bench.operations import OPERATIONS, WrongValues
from course_lib.bench.providers import PEERS, PROVIDERS, Provider, ProviderFunctions, ShapeRefused
from course_lib.cli import bench as bench_command
from course_lib.lessons.figures import bench as figures
from course_lib.norms import reference

DTYPES = operations.DTYPES


@pytest.fixture
def no_gpu(monkeypatch, tmp_path):
    """Measurements start as on a GPU, a call takes 3 us (the floor 2), and files go to a folder of
    their own."""

    def new(kind, method, versions=None):
        return measurement.Measurement(
            kind, "Test GPU", "2026-01-02", {"torch": "x"} | (versions or {}), method, live=True
        )

    def device_us(calls, replays=12):
        return 2.0 * len(calls) if timed[-1:] == ["floor"] else 3.0 * len(calls)

    timed = []
    floor = operations.floor_us

    def floor_us(op, inputs):
        timed.append("floor")
        try:
            return floor(op, inputs)
        finally:
            timed.pop()

    monkeypatch.setattr(measurement, "new", new)
    monkeypatch.setattr(timing, "device_us", device_us)
    monkeypatch.setattr(operations, "floor_us", floor_us)
    monkeypatch.setattr(paths, "BENCH_RESULTS", tmp_path)


def taken(ops, chosen, shape=None, dtype="fp32"):
    result = measurement.new("forward", "test")
    grid.measure_shape(
        result, [OPERATIONS[name] for name in ops], shape or Shape(3, 20), dtype, chosen
    )
    return result


def values(op="layer_norm_backward", M=5, N=33, dtype=torch.float32):
    return operations.make(M, N, dtype, "cpu", 1, [OPERATIONS[op]])[0]


def right(op: str, v) -> tuple[torch.Tensor, ...]:
    """The operation by the course's reference, rounded to the dtype."""
    x = v.x + v.residual if OPERATIONS[op].add else v.x
    if op == "layer_norm_backward":
        out = reference.layer_norm_vjp(v.dy, x, v.w)
    elif op == "rms_norm_backward":
        out = reference.rms_norm_vjp(v.dy, x, v.w)
    else:
        y = (
            reference.layer_norm(x, v.w, v.b).y
            if OPERATIONS[op].centred
            else reference.rms_norm(x, v.w).y
        )
        out = (reference.float64(x), y) if OPERATIONS[op].add else (y,)
    return tuple(torch.tensor(array).to(v.x) for array in out)


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_check_agrees_with_the_reference_over_chunks_of_rows(op, dtype, monkeypatch):
    monkeypatch.setattr(operations, "_CHUNK", 70)  # two rows at a time, and one left over
    v = values(op, dtype=DTYPES[dtype])
    operations.check(OPERATIONS[op], right(op, v), v)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_one_wrong_element_anywhere_is_found(data):
    op = OPERATIONS[data.draw(st.sampled_from(sorted(OPERATIONS)))]
    v = values(op.name, M=data.draw(st.integers(1, 6)), N=data.draw(st.integers(2, 40)))
    got = list(right(op.name, v))
    which = data.draw(st.integers(0, len(got) - 1))
    place = data.draw(st.integers(0, got[which].numel() - 1))
    got[which] = got[which].clone()
    got[which].view(-1)[place] += data.draw(
        st.sampled_from([float("nan"), float("inf"), 1.0 + 20 * got[which].abs().max().item()])
    )
    with pytest.raises(WrongValues, match=f"^{op.outputs[which]} is wrong"):
        operations.check(op, got, v)


def test_dx_of_short_rows_may_be_wrong_by_the_rounding_of_its_terms_and_no_more():
    """With two columns nearly equal, rstd is up to 316 and the three terms of dx nearly cancel."""
    op = OPERATIONS["layer_norm_backward"]
    v = values(op.name, M=100_000, N=2, dtype=torch.float32)
    _, mean, rstd = torch.ops.aten.native_layer_norm(v.x, v.w.shape, v.w, v.b, operations.EPS)
    dx, dw, db = torch.ops.aten.native_layer_norm_backward(
        v.dy, v.x, v.w.shape, mean, rstd, v.w, v.b, [True, True, True]
    )
    operations.check(op, (dx, dw, db), v)
    steep = rstd.argmax()
    dx[steep] *= 1 + 1e-3
    with pytest.raises(WrongValues, match=r"^dx is wrong"):
        operations.check(op, (dx, dw, db), v)


def test_a_missing_output_a_shape_and_a_dtype_are_named():
    v, op = values(), OPERATIONS["layer_norm_backward"]
    dx, dw, db = right("layer_norm_backward", v)
    for got, said in [
        ((dx, dw), "db is missing"),
        ((dx.T, dw, db), "dx is of shape"),
        ((dx.double(), dw, db), "dx is of torch.float64"),
    ]:
        with pytest.raises(WrongValues, match=said):
            operations.check(op, got, v)


def test_a_variance_that_forgets_the_mask_is_wrong():
    v = values("layer_norm")
    wide = v.x.double()
    var = ((wide - wide.mean(1, keepdim=True)) ** 2).mean(1, keepdim=True) + wide.mean(
        1, keepdim=True
    ) ** 2 * 31 / 33
    y = (wide - wide.mean(1, keepdim=True)) * torch.rsqrt(var + 1e-5) * v.w + v.b
    with pytest.raises(WrongValues):
        operations.check(OPERATIONS["layer_norm"], (y.float(),), v)


# ---- the course's own providers, and PyTorch's ---------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ours",
        "blocked",
        "resident",
        "few_rows",
        "persistent",
        "two-stage",
        "columns",
        "unfused",
        "kernels",
        "torch",
    ],
)
def test_what_a_provider_returns_is_the_operation(name):
    prepare = PROVIDERS[name].load().prepare
    known = [
        op
        for op in prepare
        if not (name == "torch" and op == "rms_norm_backward" and course_lib.DEVICE == "cpu")
    ]
    assert known
    for op in known:
        (v,) = operations.make(5, 33, torch.float32, course_lib.DEVICE, 1, [OPERATIONS[op]])
        operations.check(OPERATIONS[op], prepare[op](v)(), v)


def test_every_name_of_a_measurement_is_a_provider_and_every_operation_has_one():
    for module in (forward, backward, long_rows, host):
        assert (
            set(module.PROVIDERS) <= set(PROVIDERS)
            and "ours" in module.PROVIDERS
            and set(providers.PEERS) <= set(module.PROVIDERS)
        )
    assert set(PROVIDERS["ours"].load().prepare) == set(OPERATIONS)


def test_split_leaves_short_rows_to_other_designs():
    v = values("layer_norm")
    for prepare in PROVIDERS["split"].load().prepare.values():
        with pytest.raises(ShapeRefused, match="stay with one program"):
            prepare(v)


def test_a_row_too_long_for_a_design_is_a_refusal():
    try:
        PROVIDERS["resident"].load().prepare["layer_norm"](values("layer_norm", 1, 40000))()
    except ValueError as error:
        assert PROVIDERS["resident"].state(error) == "refused"
    else:
        pytest.fail("the resident kernel took 40000 columns")


# ---- other libraries: one that is not there, refuses, is wrong, fails ----------------------------


def fake(name="liger", **prepare) -> Provider:
    return replace(PROVIDERS[name], load=lambda: ProviderFunctions(prepare), package="")


def test_a_library_that_is_not_installed_is_said_to_be_absent(no_gpu, monkeypatch):
    monkeypatch.setitem(
        PROVIDERS, "liger", replace(PROVIDERS["liger"], package="no_such_package_at_all")
    )
    result, timed = grid.begin("forward", "fp16", ["ours", "liger"], forward.PROVIDERS, whole=True)
    assert [p.name for p in timed] == ["ours"]
    assert result.untimed == [{"provider": "liger", "state": "absent", "note": "not installed"}]
    assert "liger, absent: not installed" in tables.notes(result)


def test_one_that_refuses_is_a_dash_with_the_reason_and_the_others_are_timed(no_gpu):
    def refuse(v):
        raise RuntimeError(
            "Cannot launch Triton kernel since n = 131072 exceeds the recommended Triton blocksize"
            " = 65536."
        )

    ours = fake("ours", layer_norm=lambda v: lambda: right("layer_norm", v))
    result = taken(["layer_norm"], [fake(layer_norm=refuse), ours])
    assert [row["provider"] for row in result.rows] == ["ours"]
    (entry,) = result.untimed
    assert (
        entry["state"] == "refused"
        and "blocksize = 65536" in entry["note"]
        and (entry["M"], entry["N"]) == (3, 20)
    )
    assert "liger, refused: Cannot launch Triton kernel since n = ..." in tables.over_floor(result)


def test_one_with_wrong_values_is_not_timed_and_says_what_is_wrong(no_gpu):
    result = taken(["layer_norm"], [fake(layer_norm=lambda v: lambda: (v.x * 0.9,))])
    assert (
        not result.rows
        and result.untimed[0]["state"] == "wrong"
        and "y is wrong by" in result.untimed[0]["note"]
    )


def test_an_unexpected_exception_is_kept_with_its_type_and_message(no_gpu):
    def fail(v):
        raise KeyError("sm_90a")

    result = taken(
        ["layer_norm", "rms_norm"],
        [fake(layer_norm=fail, rms_norm=lambda v: lambda: right("rms_norm", v))],
    )
    assert [row["op"] for row in result.rows] == ["rms_norm"]
    assert (result.untimed[0]["state"], result.untimed[0]["note"]) == (
        "error",
        "KeyError: 'sm_90a'",
    )


def test_one_that_cannot_be_imported_is_an_error_of_that_provider(no_gpu):
    def load():
        raise ImportError("libcudart.so.13: cannot open shared object file")

    result = taken(
        ["layer_norm"],
        [
            replace(fake(), load=load),
            fake("ours", layer_norm=lambda v: lambda: right("layer_norm", v)),
        ],
    )
    assert [row["provider"] for row in result.rows] == ["ours"]
    assert (
        result.untimed[0]["state"] == "error"
        and "libcudart" in result.untimed[0]["note"]
        and "op" not in result.untimed[0]
    )
    assert "liger, error: ImportError: libcudart" in tables.over_floor(result)


def test_a_library_installed_by_hand_is_called_by_its_own_functions(no_gpu, monkeypatch):
    """A stand-in for Liger, with an autograd function that works in place as Liger's does."""

    class LayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b, eps):
            y, mean, rstd = torch.native_layer_norm(x, w.shape, w, b, eps)
            ctx.save_for_backward(x, w, b, mean, rstd)
            return y

        @staticmethod
        def backward(ctx, dy):
            x, w, b, mean, rstd = ctx.saved_tensors
            return (
                *torch.ops.aten.native_layer_norm_backward(
                    dy, x, w.shape, mean, rstd, w, b, [True] * 3
                ),
                None,
            )

    class RMSNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, eps, *rest):
            ctx.save_for_backward(x, w)
            return torch.nn.functional.rms_norm(x, w.shape, w, eps)

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            vjp = reference.rms_norm_vjp(dy, x, w)
            dy.copy_(torch.tensor(vjp.dx))
            return dy, torch.tensor(vjp.dw).to(w), None

    module = types.ModuleType("liger_kernel.ops")
    module.LigerLayerNormFunction = LayerNorm
    module.LigerRMSNormFunction = RMSNorm
    module.LigerFusedAddRMSNormFunction = None
    package = types.ModuleType("liger_kernel")
    package.__spec__ = importlib.machinery.ModuleSpec("liger_kernel", None)
    monkeypatch.setitem(sys.modules, "liger_kernel", package)
    monkeypatch.setitem(sys.modules, "liger_kernel.ops", module)
    assert (
        PROVIDERS["liger"].installed()
        and providers.find_versions([PROVIDERS["liger"]])["liger-kernel"]
    )
    ops = ["layer_norm_backward", "rms_norm_backward"]
    later = fake("quack", rms_norm_backward=lambda v: lambda: right("rms_norm_backward", v))
    result = taken(ops, [PROVIDERS["liger"], later])
    assert not result.untimed
    assert {(row["op"], row["provider"]) for row in result.rows} == {
        (op, "liger") for op in ops
    } | {("rms_norm_backward", "quack")}


def test_a_library_that_works_in_place_gets_copies(no_gpu, monkeypatch):
    """A stand-in for flashinfer, whose fused addition writes the sum over the residual, and y over
    x."""

    def fused_add_rmsnorm(x, residual, w, eps):
        residual += x
        x.copy_(torch.nn.functional.rms_norm(residual, w.shape, w, eps))

    module = types.ModuleType("flashinfer.norm")
    module.fused_add_rmsnorm = fused_add_rmsnorm
    module.rmsnorm = lambda x, w, eps: torch.nn.functional.rms_norm(x, w.shape, w, eps)
    package = types.ModuleType("flashinfer")
    package.__spec__ = importlib.machinery.ModuleSpec("flashinfer", None)
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    monkeypatch.setitem(sys.modules, "flashinfer.norm", module)
    assert {"flashinfer-python", "nvidia-cutlass-dsl"} <= set(
        providers.find_versions([PROVIDERS["flashinfer"]])
    )
    result = taken(
        ["rms_norm", "add_rms_norm"],
        [PROVIDERS["flashinfer"], PROVIDERS["unfused"], PROVIDERS["torch"]],
    )
    assert not result.untimed
    timed = {(row["op"], row["provider"]) for row in result.rows}
    assert {
        ("rms_norm", "flashinfer"),
        ("add_rms_norm", "flashinfer"),
        ("add_rms_norm", "unfused"),
        ("add_rms_norm", "torch"),
    } <= timed


# ---- what is measured ----------------------------------------------------------------------------


def spied(monkeypatch):
    shapes = []
    monkeypatch.setattr(
        grid,
        "measure_shape",
        lambda result, ops, shape, dtype, timed: shapes.append((shape, dtype, timed, ops)),
    )
    return shapes


def test_the_whole_grid_has_every_row_length(no_gpu, monkeypatch):
    shapes = spied(monkeypatch)
    for module in (forward, backward, long_rows):
        assert module.measure().kind == module.KIND
    assert {256, 1024, 2048, 4096, 4095, 4097, 5120, 8192, 16384, 32768, 65536, 131072, 262144} == {
        shape.N for shape, *_ in shapes
    }
    assert all(0.99 * 2**25 < shape.M * shape.N <= 2**26 for shape, *_ in shapes if shape.M > 16)
    assert all(shape.M >= 32768 for shape, *_ in shapes if shape.N == 256)


def test_a_lesson_gets_the_lengths_that_it_asks_for_stored_ones_too():
    asked = (4095, 4096, 4097, 5120)
    assert {row["N"] for row in forward.latest(asked).rows} == set(asked)
    assert {row["N"] for row in forward.latest().rows} == set(forward.COLUMNS)


def test_a_part_is_never_taken_for_the_whole(no_gpu, monkeypatch):
    shapes = spied(monkeypatch)
    kinds = [
        forward.measure((1024,)).kind,
        forward.measure(providers=("ours", "torch")).kind,
        forward.measure(dtype="bf16").kind,
        backward.measure((1024,), "fp32").kind,
    ]
    assert kinds == ["forward_part", "forward_part", "forward_bf16", "backward_fp32_part"]
    assert [p.name for p in shapes[1][2]] == ["ours", "torch"] and shapes[-1][1] == "fp32"
    for kind in kinds:
        measurement.new(kind, "").save()
    with pytest.raises(CourseError, match="no stored measurement 'forward'"):
        measurement.stored("forward")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "fp8"}, "no dtype 'fp8'"),
        ({"providers": ["ours", "nobody"]}, "no provider 'nobody'"),
        ({"providers": ["persistent"]}, "It has: ours, blocked"),
    ],
)
def test_what_is_not_there_is_refused_in_words(no_gpu, options, said):
    with pytest.raises(CourseError, match=said):
        forward.measure(**options)


def test_a_row_says_what_a_row_always_said(no_gpu):
    (row,) = taken(
        ["layer_norm"],
        [fake("ours", layer_norm=lambda v: lambda: right("layer_norm", v))],
        Shape(16, 33, " M=16"),
        "fp16",
    ).rows
    assert list(row) == ["op", "provider", "M", "N", "dtype", "us", "gbps", "over_floor"]
    assert (row["op"], row["M"], row["N"], row["dtype"], row["over_floor"]) == (
        "layer_norm M=16",
        16,
        33,
        "fp16",
        1.5,
    )
    assert row["gbps"] == round(2 * 16 * 33 * 2 / row["us"] * 1e-3)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_floor_is_the_fastest_pass_over_the_same_bytes(name, monkeypatch):
    """The device moves a byte a nanosecond; passes differ in their overhead, and the cheapest is
    taken."""
    op, v = OPERATIONS[name], values(name)
    moved, overheads = [], iter(range(5, 100))
    matrix = v.x.numel() * v.x.element_size()

    def device_us(calls):
        matrices = 3 if len(moved) >= 3 else 2
        moved.append(matrices)
        return matrices * matrix * 1e-3 * (1 + next(overheads) / 100)

    monkeypatch.setattr(timing, "device_us", device_us)
    assert operations.floor_us(op, [v]) == pytest.approx(1.05 * op.matrices * matrix * 1e-3)
    assert len(moved) >= 3


def test_each_provider_is_timed_in_both_orders_and_the_better_time_counts(no_gpu, monkeypatch):
    """Whoever is timed first after new inputs takes longer: that is nobody's fault."""
    order = []

    def device_us(calls):
        order.append(None)
        return 5.0 if len(order) == 1 else 3.0

    monkeypatch.setattr(operations, "floor_us", lambda op, inputs: 2.0)
    monkeypatch.setattr(timing, "device_us", device_us)
    rows = taken(["layer_norm"], [PROVIDERS["ours"], PROVIDERS["torch"]]).rows
    assert len(order) == 4
    assert [(row["provider"], row["us"], row["over_floor"]) for row in rows] == [
        ("ours", 3.0, 1.5),
        ("torch", 3.0, 1.5),
    ]


# ---- host ----------------------------------------------------------------------------------------


def test_host_times_calls_and_not_what_they_wait_for(no_gpu, monkeypatch):
    monkeypatch.setattr(host, "SHAPE", Shape(4, 16))
    seen = []
    monkeypatch.setattr(timing, "host_us", lambda call: seen.append(call()) or 7.0)
    result = host.measure("fp32", ["ours", "kernels", "torch"])
    got = {(row["op"], row["provider"], row["passes"]) for row in result.rows}
    assert {
        ("layer_norm", p, passes) for p in ("ours", "kernels", "torch") for passes in host.PASSES
    } <= got
    assert ("add_layer_norm", "torch", "forward and backward") in got and len(seen) == len(
        result.rows
    )
    assert all(row["us"] == 7.0 and (row["M"], row["N"]) == (4, 16) for row in result.rows)
    text = host.table(result, 120)
    assert "forward and backward, us a call" in text and text.count("\nkernels") == 2


def test_host_gradients_are_the_operations(no_gpu):
    op, v = OPERATIONS["add_layer_norm"], values("layer_norm_backward")
    v = replace(v, residual=v.dy.flip(0))
    dx, dw, db, dresidual = host._call_through_autograd(
        PROVIDERS["torch"].load().eager[op.name], op, v
    )()
    want = reference.layer_norm_vjp(v.dy, v.x + v.residual, v.w)
    assert np.allclose(dx, want.dx + reference.float64(v.dy), atol=1e-5) and torch.equal(
        dx, dresidual
    )
    assert np.allclose(dw, want.dw, atol=1e-4) and np.allclose(db, want.db, atol=1e-4)


def test_host_us_is_the_median_of_the_calls_after_the_first_batch(monkeypatch):
    clock, calls = [0], []

    def call():
        calls.append(1)
        # compiling, then an interruption here and there
        clock[0] += 10**9 if len(calls) <= 50 else 5000 if len(calls) % 10 else 10**8

    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: clock[0])
    assert timing.host_us(call, batches=4) == 5.0 and len(calls) == 250


# ---- goals, tables, pictures ---------------------------------------------------------------------


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


def test_a_measurement_without_ours_is_judged_by_what_the_course_chose():
    result = measurement.Measurement("backward", "Test GPU", "2026-01-02", {}, "")
    result.rows += rows(
        "layer_norm_backward", 32768, 1024, **{"two-stage": 1.0, "persistent": 1.1, "torch": 3.0}
    )
    (entry,) = summary.compare_with_peers(result)
    assert entry["ours"] == 1.1


def test_a_cell_without_a_time_says_which_kind_of_nothing_it_is():
    result = measurement.Measurement("forward", "Test GPU", "2026-01-02", {}, "")
    for N in (256, 1024, 2048):
        result.rows += rows("layer_norm", 4, N, ours=1.0)
    result.rows += rows("layer_norm", 4, 256, liger=1.5)
    for N, state in ((1024, "error"), (2048, "wrong")):
        result.untimed.append(
            {
                "op": "layer_norm",
                "provider": "liger",
                "M": 4,
                "N": N,
                "dtype": "fp16",
                "state": state,
                "note": "no\nluck",
            }
        )
    result.untimed.append(
        {
            "op": "layer_norm",
            "provider": "apex",
            "M": 4,
            "N": 256,
            "dtype": "fp16",
            "state": "error",
            "note": "broken",
        }
    )
    lines = tables.over_floor(result).splitlines()
    assert lines[1].split() == ["time", "over", "floor,", "N", "=", "256", "1024", "2048"]
    assert [line.split()[1:] for line in lines if line.startswith("layer_norm")] == [
        ["ours", *["1.00"] * 3],
        ["liger", "1.50", "error", "wrong"],
    ]
    assert (
        len({len(line) for line in lines[1:4]}) == 1
        and "liger, error: no luck (layer_norm 4 x 1024)" in lines
    )
    assert any(line.startswith("apex, error: broken") for line in lines)


@pytest.mark.parametrize("kind", ["forward", "backward", "long_rows", "statistics", "training"])
def test_stored_measurements_of_before_are_read_and_shown(kind):
    (text,) = bench_command.run(kind, stored=True)
    assert text.startswith(measurement.stored(kind).label())
    assert "goals" not in text and "MISSED" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_all_that_is_stored_is_summed_up_in_80_columns():
    *texts, closing = bench_command.run("all", stored=True)
    assert [text.split(":")[0] for text in texts] == list(bench_command.KINDS)
    lines = "\n".join([*texts, closing]).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 80 and "MISSED" not in "".join(lines)
    stored = {
        (row["op"], row["N"], row["provider"]): row["over_floor"]
        for row in measurement.stored("forward").rows
    }
    best = min(
        time
        for (op, N, name), time in stored.items()
        if (op, N) == ("layer_norm", 256) and name in PEERS
    )
    (line,) = [line for line in texts[0].splitlines() if line.startswith("layer_norm ")]
    assert f"{stored['layer_norm', 256, 'ours']:.2f} / {best:.2f}" in line
    assert "course bench KIND --stored" in " ".join(closing.split())


def test_a_table_too_wide_is_split_and_loses_nothing():
    names, columns = [["op", "a", "bb"]], [[str(k), f"{k}.1", f"{k}.2"] for k in range(10)]
    whole = tables.in_blocks(names, columns, 200)
    assert len(whole) == 3
    lines = tables.in_blocks(names, columns, 30)
    blocks = [block.splitlines() for block in "\n".join(lines).split("\n\n")]
    assert (
        max(map(len, lines)) <= 30
        and len(blocks) == 2
        and all(block[0].startswith("op") for block in blocks)
    )
    assert [
        list(itertools.chain.from_iterable(block[row].split()[1:] for block in blocks))
        for row in range(3)
    ] == [line.split()[1:] for line in whole]
    assert len(tables.in_blocks(names, columns, 1)) == 4 * 10 - 1, (
        "too narrow for anything: one column a block"
    )


def test_json_holds_everything_that_was_measured():
    (text,) = bench_command.run("all", stored=True, as_json=True)
    everything = json.loads(text)
    assert list(everything) == [kind for kind in bench_command.KINDS if measurement.is_stored(kind)]
    assert (
        everything["host"]["rows"] == measurement.stored("host").rows and everything["host"]["date"]
    )


@pytest.mark.parametrize("kind", ["statistics", "training"])
def test_every_kind_is_drawn(kind, tmp_path):
    *_, last = bench_command.run(kind, stored=True, plot=tmp_path / "new" / f"{kind}.html")
    assert (
        "drawn into" in last and "data-picture=" in (tmp_path / "new" / f"{kind}.html").read_text()
    )


def test_all_stored_says_what_is_not_measured_yet_and_goes_on(no_gpu):
    measurement.Measurement(
        "backward",
        "Test GPU",
        "2026-01-02",
        {},
        "",
        rows("layer_norm_backward", 32768, 1024, ours=1.1),
    ).save()
    lines = list(bench_command.run("all", stored=True))
    assert any(line.startswith("host: not measured yet") for line in lines) and any(
        "layer_norm_backward  1.10 / -" in line for line in lines
    )


def test_stored_can_be_narrowed_to_columns_and_providers(no_gpu):
    result = measurement.Measurement("forward_bf16", "Test GPU", "2026-01-02", {}, "")
    for N in (256, 1024):
        result.rows += rows("layer_norm", 4, N, ours=1.0, torch=2.0)
    result.untimed += [{"provider": "apex", "state": "absent", "note": "not installed"}]
    result.save()
    (text,) = bench_command.run(
        "forward", stored=True, columns="1024", providers="ours", dtype="bf16"
    )
    assert "1024" in text and "256" not in text and "torch" not in text and "apex" not in text


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (
            "sideways",
            {},
            "There are: forward, backward, long_rows, statistics, host, training, all",
        ),
        ("host", {"columns": "256"}, "has no --columns. These have: forward, backward, long_rows"),
        ("statistics", {"dtype": "bf16"}, "has no --dtype"),
        ("forward", {"columns": "256;512"}, "--columns 256;512 is not a list"),
        ("forward", {"columns": "0"}, "is not a list"),
        ("forward", {"stored": True, "columns": "777"}, "has no row length 777. It has: 256, 1024"),
        (
            "forward",
            {"stored": True, "providers": "ours,foo"},
            "no provider 'foo' here. There are: ours, blocked",
        ),
        (
            "all",
            {"stored": True, "providers": "foo"},
            "no provider 'foo' here. There are: ours, .*quack.*persistent",
        ),
        ("forward", {"stored": True, "as_json": True, "plot": Path("x.html")}, "leave --plot out"),
    ],
)
def test_the_command_refuses_in_words(kind, options, said):
    with pytest.raises(CourseError, match=said):
        list(bench_command.run(kind, **options))


def test_nothing_to_draw_is_said(no_gpu, tmp_path):
    measurement.Measurement(
        "forward", "Test GPU", "2026-01-02", {}, "", rows("layer_norm", 4, 256, ours=1.0)
    ).save()
    with pytest.raises(CourseError, match="nothing to draw"):
        list(bench_command.run("forward", stored=True, providers="torch", plot=tmp_path / "x.html"))


def test_the_command_measures_saves_and_draws(no_gpu, monkeypatch, tmp_path):
    small = replace(
        forward.GRID, sweeps=tuple(replace(sweep, elements=64) for sweep in forward.GRID.sweeps)
    )
    monkeypatch.setattr(forward, "measure", small.measure)
    saved, text, drawn = bench_command.run(
        "forward", columns="8,9", dtype="fp32", providers="resident,torch", plot=tmp_path / "f.html"
    )
    assert (
        "forward_fp32_part-test-gpu-2026-01-02.json" in saved
        and "layer_norm resident" in text
        and "f.html" in drawn
    )
    again = measurement.stored("forward_fp32_part")
    assert {row["N"] for row in again.rows} == {8, 9} and not again.live and not again.untimed
    assert {row["op"] for row in again.rows if row["provider"] == "torch"} == {
        "layer_norm",
        "rms_norm",
        "add_rms_norm",
        "add_layer_norm",
    }


@pytest.mark.parametrize("module", [forward, backward, long_rows])
def test_a_line_of_the_picture_is_what_the_rows_say_and_no_two_look_alike(module):
    names = module.PROVIDERS
    result = measurement.Measurement("forward", "Test GPU", "2026-01-02", {}, "")
    for N in (256, 1024):
        result.rows += rows(
            "layer_norm", 4, N, **{name: 1.0 + 0.1 * k for k, name in enumerate(names)}
        )
    result.rows[0]["over_floor"] = 57.0
    (view,) = figures.over_floor(result).data["views"]
    lines = {line["name"].partition(",")[0]: line for line in view["panels"][0]["series"]}
    assert lines["torch"]["y"] == pytest.approx([1.0 + 0.1 * names.index("torch")] * 2)
    assert any("up to 57x" in line["name"] for line in lines.values())
    assert len({(line["colour"], line["dash"]) for line in lines.values()}) == len(names)


def test_no_line_crosses_a_shape_that_was_refused():
    result = measurement.Measurement("forward", "Test GPU", "2026-01-02", {}, "")
    for N in (256, 1023, 1024):
        result.rows += rows("layer_norm", 4, N, ours=1.0, **({} if N == 1023 else {"quack": 1.5}))
    (view,) = figures.over_floor(result).data["views"]
    (quack,) = [line for line in view["panels"][0]["series"] if line["name"] == "quack"]
    assert [math.isnan(y) for y in quack["y"]] == [False, True, False]


def test_the_bars_are_the_rows():
    result = measurement.Measurement("host", "Test GPU", "2026-01-02", {}, "")
    for provider, us in (("ours", 20.0), ("torch", 10.0)):
        for passes, factor in (("forward", 1), ("forward and backward", 5)):
            result.rows.append(
                {
                    "op": "rms_norm",
                    "provider": provider,
                    "passes": passes,
                    "M": 64,
                    "N": 1024,
                    "dtype": "fp16",
                    "us": us * factor,
                }
            )
    first, second = (
        panel["groups"][0][1] for panel in figures.host(result).data["views"][0]["panels"]
    )
    assert [bar["parts"][0][0] for bar in first] == [20.0, 10.0] and [
        bar["words"] for bar in second
    ] == ["100.0", "50.0"]
    assert [bar["name"] for bar in second] == ["ours", "torch"]
