"""The access map: every lane counted once, in the right pass, for any kernel, here and in a second process."""

from __future__ import annotations

import importlib
import io
from itertools import pairwise

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import course_lib
from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.compiler import KernelSource
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel
from course_lib.lessons import access_map, style
from course_lib.lessons.access_map.figure import draw
from course_lib.lessons.access_map.model import AccessMap, Pass, describe, model, runs, title
from course_lib.lessons.access_map.run import record

BOTH = {"HAS_W": True, "HAS_B": True}
PNG = b"\x89PNG\r\n\x1a\n"
FACTOR = tl.constexpr(2.0)


@triton.jit
def doubled(value):
    return value * FACTOR


@triton.jit
def transpose_kernel(source_ptr, out_ptr, M, N, BLOCK: tl.constexpr, DTYPE: tl.constexpr = tl.float32):
    column = tl.program_id(0)
    rows = tl.arange(0, BLOCK)
    values = tl.load(source_ptr + rows * N + column, mask=rows < M)
    tl.store(out_ptr + column * M + rows, doubled(values).to(DTYPE), mask=rows < M)


@triton.jit
def sweeps_kernel(x_ptr, count_ptr, n, BLOCK: tl.constexpr, SWEEPS: tl.constexpr):
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(SWEEPS):
        total += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(x_ptr + offsets, total, mask=offsets < n)
    tl.atomic_add(count_ptr, tl.sum(total))


@triton.jit
def broadcast_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(y_ptr + lanes, tl.load(x_ptr + lanes // 2) + tl.load(x_ptr + lanes))


@triton.jit
def overrun_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + lanes, tl.load(x_ptr + lanes))


@triton.jit
def raising_kernel(x_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr + n, x)  # a block through one pointer


def norm_map(
    M: int, N: int, block: int, dtype=torch.float16, stride: int | None = None, resident: bool = False, rows: int = 2
) -> AccessMap:
    x = torch.randn(M, stride or N).to(dtype)[:, :N]
    y, w, b = torch.empty(M, N, dtype=dtype), torch.ones(N), torch.zeros(N)
    tensors = (x, y, w, b, torch.empty(M), torch.empty(M), x.stride(0), 1, N, 1)
    if resident:
        constants = BOTH | {"ROWS": rows, "BLOCK": triton.next_power_of_2(N)}
        return model(record(layer_norm_resident_kernel, (triton.cdiv(M, rows),), (*tensors, M, N, 1e-5), constants))
    return model(record(layer_norm_blocked_kernel, (M,), (*tensors, N, 1e-5), BOTH | {"BLOCK": block}))


@settings(max_examples=10, deadline=None)
@given(
    M=st.integers(1, 5), N=st.integers(1, 40), block=st.sampled_from([4, 8, 16, 64]), spare=st.integers(0, 7),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]), resident=st.booleans(),
)  # fmt: skip
def test_the_passes_add_up_to_the_bytes_of_the_trace(M, N, block, spare, dtype, resident):
    state = norm_map(M, N, block, dtype, N + spare, resident)
    for name in ("x", "y", "w", "b", "mean", "rstd"):
        asked = sum(access.bytes for access in state.recording.accesses if access.tensor == name)
        assert (
            state.bytes(name) == asked == sum(t.bytes for (tensor, _), t in state.traffic().items() if tensor == name)
        )
    assert state.bytes() == sum(access.bytes for access in state.recording.accesses) and outside(state) == 0
    grid = triton.cdiv(M, 2) if resident else M
    assert (state.times("x", "read"), state.times("y", "write"), state.times("w", "read")) == (
        1 if resident else 3,
        1,
        grid,
    )
    if not resident:
        size = M * N * torch.empty(0, dtype=dtype).element_size()
        assert [state.traffic()["x", Pass("read", n)].bytes for n in (1, 2, 3)] == [size] * 3


@settings(max_examples=8, deadline=None)
@given(n=st.integers(1, 30), sweeps=st.integers(0, 7), until=st.integers(0, 40))
def test_the_bytes_so_far_grow_to_the_whole(n, sweeps, until):
    blocks = triton.cdiv(n, 8)
    state = model(
        record(sweeps_kernel, (1, blocks), (torch.ones(n), torch.zeros(1), n), {"BLOCK": 8, "SWEEPS": sweeps})
    )
    assert state.bytes("x", "read") == 4 * n * sweeps and state.bytes("x", "write") == 4 * n
    assert state.bytes("count", "atomic") == 4 * blocks
    assert state.bytes(until=until) == sum(step.access.bytes for step in state.steps[:until])
    later = state.traffic().get(("x", Pass("read", 4)))
    assert (later.bytes if later else 0) == 4 * n * max(sweeps - 3, 0)
    assert sorted(state.of_program) == list(range(blocks))  # programs of a grid of two sizes


def test_lanes_that_meet_in_one_element_are_one_visit():
    state = model(record(broadcast_kernel, (1,), (torch.arange(8.0), torch.zeros(8)), {"BLOCK": 8}))
    first, second, _ = state.steps
    assert first.visits.tolist() == [1] * 8 and first.access.offsets.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert second.visits.tolist() == [2] * 4 + [1] * 4
    assert {p.words: offsets.tolist() for p, offsets in second.passes.items()} == {
        "first read": [4, 5, 6, 7],
        "second read": [0, 1, 2, 3],
    }
    assert state.footprint("x", [0])[0, Pass("read", 2)].tolist() == [0, 1, 2, 3]


def test_the_launch_works_on_copies():
    x, count = torch.ones(8), torch.zeros(1)
    record(sweeps_kernel, (1, 1), (x, count, 8), {"BLOCK": 8, "SWEEPS": 3})
    assert x.tolist() == [1.0] * 8 and count.item() == 0


def test_tensors_that_share_memory_share_the_copy():
    shared = torch.arange(16.0)
    state = model(record(overrun_kernel, (1,), (shared[:8], shared[8:]), {"BLOCK": 8}))
    assert state.recording.fault == "" and state.times("x", "read") == state.times("y", "write") == 1
    assert [(t.buffer, t.start) for t in state.recording.tensors] == [(0, 0), (0, 32)]
    same = model(record(overrun_kernel, (1,), (shared, shared), {"BLOCK": 16}))
    assert same.times("x", "read") == same.times("x", "write") == 1 and same.bytes("y") == 0


LAUNCHES = [
    (transpose_kernel, (6,), lambda: (torch.randn(5, 6), torch.zeros(6, 5), 5, 6), {"BLOCK": 8, "DTYPE": tl.float32}),
    (layer_norm_blocked_kernel, (2,), lambda: (
        torch.randn(2, 24).half()[:, ::2], torch.zeros(2, 12).half(), torch.ones(12), torch.ones(12), torch.zeros(2), torch.zeros(2),
        24, 2, 12, 1, 12, 1e-5), BOTH | {"BLOCK": 8}),
    (overrun_kernel, (2,), lambda: (torch.ones(16), torch.zeros(12)), {"BLOCK": 8}),
]  # fmt: skip


def outside(state) -> int:
    """Bytes asked for outside the tensors."""
    return sum(step.access.bytes for step in state.steps if step.access.tensor is None)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch[0].__name__)
def test_a_second_process_sees_the_same(launch):
    """The way of a GPU machine, where this process compiles."""
    kernel, grid, arguments, constants = launch
    torch.manual_seed(0)
    given_here = arguments()
    here, apart = record(kernel, grid, given_here, constants), record(kernel, grid, given_here, constants, apart=True)
    assert (
        here.tensors == apart.tensors
        and here.fault == apart.fault
        and here.source == apart.source
        and "second" in apart.apart
    )

    def plain(recording):
        return [
            (a.program, a.kind, a.tensor, a.masked, a.line, a.offsets.tolist() if a.tensor else a.bytes)
            for a in recording.accesses
        ]

    assert plain(here) == plain(apart) and here.accesses


def test_on_a_gpu_it_says_that_another_process_interpreted(monkeypatch):
    monkeypatch.setattr(runtime, "_chosen", runtime.Runtime("gpu", "cuda", "a GPU", "for this test"))
    recording = record(overrun_kernel, (1,), (torch.ones(8), torch.ones(8)), {"BLOCK": 8})
    assert len(recording.accesses) == 2
    assert "This process compiles its kernels, so a second one interpreted this launch." in describe(
        model(recording), 0
    )


TEXT = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef mine(x_ptr, n, BLOCK: tl.constexpr):\n    cols = tl.arange(0, BLOCK)\n    tl.store(x_ptr + cols, 1.0, mask=cols < n)\n"


def test_a_kernel_in_a_file_of_its_own():
    state = model(record(KernelSource(TEXT, "mine", "exercises/ex.py"), 1, (torch.zeros(5), 5), {"BLOCK": 8}))
    (step,) = state.steps
    assert (step.access.line, step.access.masked, step.access.offsets.tolist()) == (7, 3, [0, 1, 2, 3, 4])
    assert state.recording.source[7].strip().startswith("tl.store") and 1 not in state.recording.source


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("mine(x_ptr", "mine(x_ptr,,"), r"ex.py, line 5: this is not valid Python"),
        (TEXT.replace("def mine", "def other"), "has no function `mine`"),
        (TEXT.replace("@triton.jit\n", ""), "has no @triton.jit function named `mine`"),
        (TEXT + "\nvalue = 1 / 0\n", "ex.py, line 9: ZeroDivisionError"),
        (TEXT + "\nimport os\nos._exit(3)\n", "ended with code 3"),
    ],
)
def test_a_file_that_cannot_run_is_said(text, words):
    with pytest.raises(CourseError, match=words):
        record(KernelSource(text, "mine", "exercises/ex.py"), 1, (torch.zeros(5), 5), {"BLOCK": 8})


def test_a_kernel_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(importlib.import_module("course_lib.lessons.access_map.run"), "SECONDS", 2.0)
    text = TEXT.replace("    cols", "    while n == 5:\n        pass\n    cols")
    with pytest.raises(CourseError, match="did not end within 2 seconds"):
        record(KernelSource(text, "mine", "exercises/ex.py"), 1, (torch.zeros(5), 5), {"BLOCK": 8})


def test_a_kernel_that_leaves_its_tensors_is_shown_up_to_there():
    state = model(record(overrun_kernel, (2,), (torch.ones(16), torch.zeros(12)), {"BLOCK": 8}))
    assert len(state.steps) == 4 and state.steps[-1].access.tensor is None and outside(state) == 32
    assert title(state) == "Program 1 leaves its tensors in operation 2"
    assert "program 1 stores outside y: 4 of 8 lanes" in describe(state, 3)
    widget = access_map(overrun_kernel, (2,), torch.ones(16), torch.zeros(12), BLOCK=8)
    assert "Program 1, operation 2 of 2" in widget.still().alt


def test_a_kernel_that_raises_is_shown_up_to_there():
    state = model(record(raising_kernel, (1,), (torch.ones(8), 3), {"BLOCK": 8}))
    assert title(state) == "The launch is stopped behind operation 1 of program 0" and "Error" in state.recording.fault


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": (2000,)}, "1 to 1024 programs; this one is"),
        ({"grid": (0,)}, "programs; this one is"),
        ({"arguments": (torch.ones(4),)}, "lacks an argument for `y_ptr`"),
        ({"arguments": (3, 4)}, "given no tensor"),
        ({"arguments": (torch.ones(4), torch.ones(4), 8, 9)}, "has 3 parameters, and 4 arguments"),
        ({"named": {"BLOCK": 8, "M": 3}}, "has no parameter `M`; it has x_ptr, y_ptr, BLOCK"),
        ({"arguments": (torch.ones(4, dtype=torch.complex64), torch.ones(4))}, "complex64 cannot be mapped"),
        ({"arguments": (torch.ones(20_000_000), torch.ones(4))}, "64 MiB"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    launch = {"grid": (1,), "arguments": (torch.ones(8), torch.ones(8)), "named": {"BLOCK": 8}} | change
    with pytest.raises(CourseError, match=words):
        record(overrun_kernel, launch["grid"], launch["arguments"], launch["named"])
    with pytest.raises(TypeError, match="is no kernel"):
        record(3, (1,), (), {})


def test_a_grid_may_be_a_function_and_arguments_named():
    state = model(record(overrun_kernel, lambda meta: (triton.cdiv(16, meta["BLOCK"]),), (), {
        "x_ptr": torch.ones(16), "y_ptr": torch.zeros(16), "BLOCK": 4, "num_warps": 8}))  # fmt: skip
    assert state.recording.grid == (4,) and state.times("x", "read") == 1


def test_far_rows_cost_no_memory_to_count():
    state = norm_map(3, 5, 8, stride=2**20)
    assert state.times("x", "read") == 3 and state.footprint("x", [2])[2, Pass("read", 1)].tolist() == [
        2**21 + k for k in range(5)
    ]


@given(st.lists(st.integers(0, 60), unique=True), st.integers(1, 5))
def test_runs_cover_what_they_are_made_of(offsets, gap):
    found = runs(np.array(sorted(offsets), dtype=np.int64), gap)
    inside = {k for first, last in found for k in range(first, last + 1)}
    assert set(offsets) <= inside and (gap > 1 or inside == set(offsets))
    assert all(later[0] - earlier[1] > gap for earlier, later in pairwise(found))


# ---- the picture and the widget


def stepper():
    return access_map(transpose_kernel, (8,), torch.randn(5, 8), torch.zeros(8, 5), 5, 8, BLOCK=8)


def test_the_slider_moves_through_programs_and_operations():
    widget = stepper()
    assert title(widget.map) == "A program reads source once and writes out once"
    assert "Program 0, operation 1 of 2: first read of source, 5 lanes, 3 masked, 20 bytes, line" in widget.caption
    before = bytes(widget._image.value)
    widget.step.click()
    assert "operation 2 of 2: write of out" in widget.caption and bytes(widget._image.value) != before
    widget.controls["program"].value = 7
    assert widget.slider.value == 0 and "Program 7, operation 1 of 2" in widget.caption and widget.error is None
    assert "programs 6 to 7" in widget.picture.alt
    widget.reset()
    assert bytes(widget._image.value) == before


def test_the_saved_picture_is_the_whole_of_the_first_programs():
    _, metadata = stepper()._repr_mimebundle_()
    assert (
        "Program 5, operation 2 of 2" in metadata["image/png"]["alt"]
        and "source 1 read, out 1 write" in metadata["image/png"]["alt"]
    )


def test_a_program_without_an_access_is_shown_too():
    @triton.jit
    def first_only_kernel(x_ptr):
        if tl.program_id(0) == 0:
            tl.store(x_ptr, 1.0)

    widget = access_map(first_only_kernel, (3,), torch.zeros(1))
    widget.controls["program"].value = 2
    assert widget.error is None and len(widget.frames) == 1 and "grid 3" in widget.caption

    @triton.jit
    def idle_kernel(x_ptr):
        tl.program_id(0)

    nothing = access_map(idle_kernel, (2,), torch.zeros(1))
    nothing.controls["program"].value = 1
    assert nothing.error is None and "No program asks for any memory" in nothing.still().alt


EXTREMES = [
    lambda: norm_map(1, 1, 4),
    lambda: norm_map(20, 3, 4),
    lambda: norm_map(3, 100, 16, stride=2**16),
    lambda: norm_map(3, 33, 16, resident=True),
    lambda: model(record(sweeps_kernel, (1, 5), (torch.ones(30), torch.zeros(1), 30), {"BLOCK": 8, "SWEEPS": 9})),
    lambda: model(record(overrun_kernel, (2,), (torch.ones(16), torch.zeros(3)), {"BLOCK": 8})),
]


@pytest.mark.parametrize("make", EXTREMES)
def test_every_extreme_is_drawn_inside_the_figure(make):
    state = make()
    for at in (0, len(state.steps) - 1):
        shown = draw(state, at)
        assert shown.png.startswith(PNG)
        pixels = np.asarray(Image.open(io.BytesIO(shown.png)).convert("L"), dtype=int)
        edges = np.concatenate([pixels[:4].ravel(), pixels[-4:].ravel(), pixels[:, :4].ravel(), pixels[:, -4:].ravel()])
        assert edges.min() > 235 and pixels.shape[1] == round(style.WIDTH * style.DPI)


def test_passes_differ_in_more_than_colour():
    from course_lib.lessons.access_map.figure import _HATCH
    from course_lib.lessons.access_map.model import LAST

    hatches = [hatch for verb, count in LAST.items() for hatch in _HATCH[verb][:count]]
    assert len(set(hatches)) == len(hatches) == sum(LAST.values())


pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles; lesson 06 under nbval runs the map there"
)
