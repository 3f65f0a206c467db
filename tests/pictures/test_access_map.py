"""The access map: every lane counted once, in the right pass, for any kernel, here and in a second
process."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.compiler import KernelSource
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel
from course_lib.lessons import access_map
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.access_map.model import (
    LAST,
    AccessMap,
    Pass,
    make_data,
    model,
    split_lanes,
)
from course_lib.lessons.pictures.access_map.run import record

BOTH = {"HAS_W": True, "HAS_B": True}
FACTOR = tl.constexpr(2.0)


@triton.jit
def doubled(value):
    return value * FACTOR


@triton.jit
def transpose_kernel(
    source_ptr, out_ptr, M, N, BLOCK: tl.constexpr, DTYPE: tl.constexpr = tl.float32
):
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
    M: int,
    N: int,
    block: int,
    dtype=torch.float16,
    stride: int | None = None,
    resident: bool = False,
    rows: int = 2,
) -> AccessMap:
    x = torch.randn(M, stride or N).to(dtype)[:, :N]
    y, w, b = torch.empty(M, N, dtype=dtype), torch.ones(N), torch.zeros(N)
    tensors = (x, y, w, b, torch.empty(M), torch.empty(M), x.stride(0), 1, N, 1)
    if resident:
        constants = BOTH | {"ROWS": rows, "BLOCK": triton.next_power_of_2(N)}
        return model(
            record(
                layer_norm_resident_kernel,
                (triton.cdiv(M, rows),),
                (*tensors, M, N, 1e-5),
                constants,
            )
        )
    return model(
        record(layer_norm_blocked_kernel, (M,), (*tensors, N, 1e-5), BOTH | {"BLOCK": block})
    )


@settings(max_examples=10, deadline=None)
@given(
    M=st.integers(1, 5), N=st.integers(1, 40), block=st.sampled_from([4, 8, 16, 64]),
    spare=st.integers(0, 7),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]), resident=st.booleans(),
)  # fmt: skip
def test_the_passes_add_up_to_the_bytes_of_the_trace(M, N, block, spare, dtype, resident):
    state = norm_map(M, N, block, dtype, N + spare, resident)
    for name in ("x", "y", "w", "b", "mean", "rstd"):
        asked = sum(access.bytes for access in state.recording.accesses if access.tensor == name)
        assert (
            state.bytes(name)
            == asked
            == sum(size for (tensor, _), size in state.traffic().items() if tensor == name)
        )
    assert (
        state.bytes() == sum(access.bytes for access in state.recording.accesses)
        and outside(state) == 0
    )
    grid = triton.cdiv(M, 2) if resident else M
    assert (state.times("x", "read"), state.times("y", "write"), state.times("w", "read")) == (
        1 if resident else 3,
        1,
        grid,
    )
    if not resident:
        size = M * N * torch.empty(0, dtype=dtype).element_size()
        assert [state.traffic()["x", Pass("read", n)] for n in (1, 2, 3)] == [size] * 3


@settings(max_examples=8, deadline=None)
@given(n=st.integers(1, 30), sweeps=st.integers(0, 7), until=st.integers(0, 40))
def test_the_bytes_so_far_grow_to_the_whole(n, sweeps, until):
    blocks = triton.cdiv(n, 8)
    state = model(
        record(
            sweeps_kernel,
            (1, blocks),
            (torch.ones(n), torch.zeros(1), n),
            {"BLOCK": 8, "SWEEPS": sweeps},
        )
    )
    assert state.bytes("x", "read") == 4 * n * sweeps and state.bytes("x", "write") == 4 * n
    assert state.bytes("count", "atomic") == 4 * blocks
    assert state.bytes(until=until) == sum(step.access.bytes for step in state.steps[:until])
    assert state.traffic().get(("x", Pass("read", 4)), 0) == 4 * n * max(sweeps - 3, 0)
    assert sorted(state.of_program) == list(range(blocks))  # programs of a grid of two sizes


def test_lanes_that_meet_in_one_element_are_one_visit():
    state = model(record(broadcast_kernel, (1,), (torch.arange(8.0), torch.zeros(8)), {"BLOCK": 8}))
    first, second, _ = state.steps
    assert first.visits.tolist() == [1] * 8 and first.access.offsets.tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    assert second.visits.tolist() == [2] * 4 + [1] * 4
    assert {p.number: offsets.tolist() for p, offsets in second.passes.items()} == {
        1: [4, 5, 6, 7],
        2: [0, 1, 2, 3],
    }


def test_the_launch_works_on_copies():
    x, count = torch.ones(8), torch.zeros(1)
    record(sweeps_kernel, (1, 1), (x, count, 8), {"BLOCK": 8, "SWEEPS": 3})
    assert x.tolist() == [1.0] * 8 and count.item() == 0


def test_tensors_that_share_memory_share_the_copy():
    shared = torch.arange(16.0)
    state = model(record(overrun_kernel, (1,), (shared[:8], shared[8:]), {"BLOCK": 8}))
    assert (
        state.recording.fault == "" and state.times("x", "read") == state.times("y", "write") == 1
    )
    x, y = state.recording.tensors
    assert y.start - x.start == 32
    same = model(record(overrun_kernel, (1,), (shared, shared), {"BLOCK": 16}))
    assert same.times("x", "read") == same.times("x", "write") == 1 and same.bytes("y") == 0


LAUNCHES = [
    (transpose_kernel, (6,), lambda: (torch.randn(5, 6), torch.zeros(6, 5), 5, 6),
        {"BLOCK": 8, "DTYPE": tl.float32}),
    (layer_norm_blocked_kernel, (2,), lambda: (
        torch.randn(2, 24).half()[:, ::2], torch.zeros(2, 12).half(), torch.ones(12),
        torch.ones(12), torch.zeros(2), torch.zeros(2),
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
    here = record(kernel, grid, given_here, constants)
    apart = record(kernel, grid, given_here, constants, apart=True)
    assert (
        here.tensors == apart.tensors
        and here.fault == apart.fault
        and here.source == apart.source
        and "second" in apart.apart
    )

    def plain(recording):
        return [
            (
                a.program,
                a.kind,
                a.tensor,
                a.masked,
                a.line,
                a.offsets.tolist() if a.tensor else a.bytes,
            )
            for a in recording.accesses
        ]

    assert plain(here) == plain(apart) and here.accesses


def test_on_a_gpu_it_says_that_another_process_interpreted(monkeypatch):
    monkeypatch.setattr(
        runtime, "_chosen", runtime.Runtime("gpu", "cuda", "a GPU", "for this test")
    )
    recording = record(overrun_kernel, (1,), (torch.ones(8), torch.ones(8)), {"BLOCK": 8})
    assert len(recording.accesses) == 2
    assert (
        recording.apart
        == "This process compiles its kernels, so a second one interpreted this launch."
    )


TEXT = (
    "import triton\nimport triton.language as tl\n\n@triton.jit\ndef mine(x_ptr, n, BLOCK:"
    " tl.constexpr):\n    cols = tl.arange(0, BLOCK)\n    tl.store(x_ptr + cols, 1.0, mask=cols <"
    " n)\n"
)


def test_a_kernel_in_a_file_of_its_own():
    state = model(
        record(KernelSource(TEXT, "mine", "exercises/ex.py"), 1, (torch.zeros(5), 5), {"BLOCK": 8})
    )
    (step,) = state.steps
    assert (step.access.line, step.access.masked, step.access.offsets.tolist()) == (
        7,
        3,
        [0, 1, 2, 3, 4],
    )
    assert (
        state.recording.source[7].strip().startswith("tl.store") and 1 not in state.recording.source
    )


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
    monkeypatch.setattr(
        importlib.import_module("course_lib.lessons.pictures.access_map.run"), "SECONDS", 2.0
    )
    text = TEXT.replace("    cols", "    while n == 5:\n        pass\n    cols")
    with pytest.raises(CourseError, match="did not end within 2 seconds"):
        record(KernelSource(text, "mine", "exercises/ex.py"), 1, (torch.zeros(5), 5), {"BLOCK": 8})


def test_a_kernel_that_leaves_its_tensors_is_shown_up_to_there():
    state = model(record(overrun_kernel, (2,), (torch.ones(16), torch.zeros(12)), {"BLOCK": 8}))
    assert len(state.steps) == 4 and state.steps[-1].access.tensor is None and outside(state) == 32
    assert "program 1 stores outside y: 4 of 8 lanes" in state.recording.fault
    data = make_data(state)  # nothing of the addresses, which are others in every run
    assert data["stopped"] == 1 and data["programs"][1][1][-1][2:] == [-1, 4, 8, 0, []]


def test_faults_are_shown_in_words(show):
    shown = show(access_map(overrun_kernel, (2,), torch.ones(16), torch.zeros(12), BLOCK=8))
    assert (
        shown.title == "Program 1 accesses memory outside its tensors in operation 2"
        and "4 of 8 lanes" in shown.caption
    )
    assert "outside the tensors" in shown.drawn
    shown = show(access_map(raising_kernel, (1,), torch.ones(8), 3, BLOCK=8))
    assert (
        shown.title == "The launch was stopped after operation 1 of program 0"
        and "Error" in shown.caption
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": (2000,)}, "1 to 1024 programs; this one is"),
        ({"grid": (0,)}, "programs; this one is"),
        ({"arguments": (torch.ones(4),)}, "lacks an argument for `y_ptr`"),
        ({"arguments": (3, 4)}, "given no tensor"),
        ({"arguments": (torch.ones(4), torch.ones(4), 8, 9)}, "has 3 parameters, and 4 arguments"),
        ({"named": {"BLOCK": 8, "M": 3}}, "has no parameter `M`; it has x_ptr, y_ptr, BLOCK"),
        (
            {"arguments": (torch.ones(4, dtype=torch.complex64), torch.ones(4))},
            "complex64 cannot be mapped",
        ),
        ({"arguments": (torch.ones(20_000_000), torch.ones(4))}, "64 MiB"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    launch = {
        "grid": (1,),
        "arguments": (torch.ones(8), torch.ones(8)),
        "named": {"BLOCK": 8},
    } | change
    with pytest.raises(CourseError, match=words):
        record(overrun_kernel, launch["grid"], launch["arguments"], launch["named"])
    with pytest.raises(TypeError, match="is no kernel"):
        record(3, (1,), (), {})


def test_a_grid_may_be_a_function_and_arguments_named():
    state = model(record(overrun_kernel, lambda meta: (triton.cdiv(16, meta["BLOCK"]),), (), {
        "x_ptr": torch.ones(16), "y_ptr": torch.zeros(16), "BLOCK": 4,
        "num_warps": 8}))  # fmt: skip
    assert state.recording.grid == (4,) and state.times("x", "read") == 1


def test_far_rows_cost_no_memory_to_count():
    state = norm_map(3, 5, 8, stride=2**20)
    assert state.times("x", "read") == 3
    assert state.steps[state.of_program[2][0]].access.offsets.tolist() == [
        2**21 + k for k in range(5)
    ]


@given(st.lists(st.integers(0, 60)))
def test_runs_of_lanes_are_the_lanes(offsets):
    runs = split_lanes(np.array(offsets, dtype=np.int64))
    assert [start + step * i for start, step, many in runs for i in range(many)] == offsets
    assert len(split_lanes(np.arange(0, 9000, 3))) == 1


def test_a_page_carries_the_first_programs_and_the_one_that_was_stopped():
    many = make_data(norm_map(300, 40, 8))
    assert many["count"] == 300 and [program for program, _ in many["programs"]] == list(
        range(len(many["programs"]))
    )
    runs = sum(len(access[-1]) for _, accesses in many["programs"] for access in accesses)
    assert 1000 < runs <= 4000 and many["tensors"][0]["times"]["read"] == 3
    stopped = make_data(
        model(
            record(
                overrun_kernel,
                (900,),
                (torch.ones(8 * 900), torch.zeros(8 * 900 - 1)),
                {"BLOCK": 8},
            )
        )
    )
    assert stopped["stopped"] == 899 and stopped["programs"][-1][0] == 899


# ---- the picture


@pytest.fixture(scope="module")
def picture():
    torch.manual_seed(0)
    return access_map(transpose_kernel, (8,), torch.randn(5, 8), torch.zeros(8, 5), 5, 8, BLOCK=8)


def test_the_browser_counts_passes_as_python_does(show):
    for state in (norm_map(3, 33, 16),
        model(record(broadcast_kernel, (1,), (torch.arange(8.0), torch.zeros(8)), {"BLOCK": 8})),
                  model(record(sweeps_kernel, (1, 2), (torch.ones(12), torch.zeros(1), 12),
                      {"BLOCK": 8, "SWEEPS": 6}))):  # fmt: skip
        shown = show(MovingPicture("access_map", make_data(state), "a map"))
        for program, numbers in state.of_program.items():
            seen = shown.call("steps", program)
            assert len(seen) == len(numbers)
            for step, number in zip(seen, numbers, strict=True):
                real = state.steps[number]
                assert (
                    step["lanes"] == real.access.offsets.tolist()
                    and step["masked"] == real.access.masked
                )
                assert step["passOf"] == (np.minimum(real.visits, LAST[real.verb]) - 1).tolist()
                assert step["most"] == real.visits.max(initial=0)


def test_strides_show_in_sectors(show):
    picture = access_map(
        transpose_kernel, (2,), torch.randn(40, 64), torch.zeros(64, 40), 40, 64, BLOCK=64
    )
    shown = show(picture)
    # a column of a matrix of 64 fp32 columns: every lane in a sector of its own; its row in the
    # result: 32 lanes in 128 bytes
    assert len(shown.call("sectors", 0, 0, 0)["sectors"]) == 32
    assert len(shown.call("sectors", 0, 1, 0)["sectors"]) == 4
    assert "32 lanes drawn access 128 bytes, which lie in 32 sectors of 32 bytes" in shown.caption
    shown.set(at=1)
    assert "in 4 sectors of 32 bytes" in shown.caption


def test_a_hand_and_the_keys_move_through_programs_operations_and_lanes(picture, show):
    shown = show(picture)
    assert shown.title == "Program 0 so far: reads source once"
    assert (
        "Program 0, operation 1 of 2: first read of tensor source by 5 lanes (3 more lanes masked),"
        " 20 bytes, line" in shown.caption
    )
    shown.page.get_by_role("button", name="Step").click()
    assert "operation 2 of 2: write of tensor out" in shown.caption
    assert shown.title == "Program 0 reads source once and writes out once"
    shown.grip("lane-3").click()
    assert "Lane 3 accesses out[3]" in shown.caption
    shown.grip("lane-6").press("Enter")
    assert "Lane 6 accesses nothing in this operation." in shown.caption
    shown.grip("program-5").click()
    assert shown.state["at"] == 0 and "Program 5, operation 1 of 2" in shown.caption
    shown.page.locator('[data-control="program"] input').press("End")
    assert "Program 7, operation 1 of 2" in shown.caption and "programs 6 to 7 of 8" in shown.drawn
    shown.page.locator('[data-control="lane"] input').press("Home")
    assert "Lane 0 accesses source[7]" in shown.caption
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.title == "Program 0 so far: reads source once"


def test_a_program_without_an_access_is_shown_too(show):
    @triton.jit
    def first_only_kernel(x_ptr):
        if tl.program_id(0) == 0:
            tl.store(x_ptr, 1.0)

    shown = show(access_map(first_only_kernel, (3,), torch.zeros(1)))
    shown.set(program=2, at=0)
    assert shown.title == "Program 2 accesses no memory" and "a grid of 3 programs" in shown.caption

    @triton.jit
    def idle_kernel(x_ptr):
        tl.program_id(0)

    assert show(access_map(idle_kernel, (2,), torch.zeros(1))).title == "No program accesses memory"


EXTREMES = [
    lambda: norm_map(1, 1, 4),
    lambda: norm_map(20, 3, 4),
    lambda: norm_map(3, 100, 16, stride=2**16),
    lambda: norm_map(3, 33, 16, resident=True),
    lambda: model(
        record(
            sweeps_kernel, (1, 5), (torch.ones(30), torch.zeros(1), 30), {"BLOCK": 8, "SWEEPS": 9}
        )
    ),
    lambda: model(record(overrun_kernel, (2,), (torch.ones(16), torch.zeros(3)), {"BLOCK": 8})),
]


def test_every_extreme_is_drawn_without_overlap(show):
    for make in EXTREMES:
        shown = show(MovingPicture("access_map", make_data(make()), "a map"))
        shown.assert_clear(
            [{"program": 0, "at": at, "lane": 1} for at in (0, 1, len(shown.call("steps", 0)) - 1)]
        )


def test_it_looks_right_everywhere(show):
    picture = MovingPicture("access_map", make_data(norm_map(4, 100, 64)), "a map")
    assert len(picture.make_html()) < 150_000
    shown = show(picture)
    shown.set(program=1, at=9, lane=5)
    shown.shoot("access_map")


def test_a_file_is_run_again_on_a_button_and_a_failure_leaves_the_picture(monkeypatch):
    texts = {"now": TEXT}
    asking = access_map(
        lambda: KernelSource(texts["now"], "mine", "exercises/ex.py"), 1, torch.zeros(5), 5, BLOCK=8
    )
    assert isinstance(asking, AskingPicture) and len(asking.picture.data["programs"][0][1]) == 1
    texts["now"] = TEXT + "    tl.store(x_ptr + cols, 2.0, mask=cols < n)\n"
    asking.ask()
    before = asking.picture
    assert asking.error is None and len(before.data["programs"][0][1]) == 2
    texts["now"] = TEXT.replace("mine(x_ptr", "mine(x_ptr,,")
    asking.ask()
    assert "not valid Python" in asking.said.value and asking.picture is before
    # from here on, because a right kernel may take as long on a busy machine
    monkeypatch.setattr(
        importlib.import_module("course_lib.lessons.pictures.access_map.run"), "SECONDS", 4.0
    )
    texts["now"] = TEXT.replace("    cols", "    while n == 5:\n        pass\n    cols")
    asking.ask()
    assert "did not end within 4 seconds" in asking.said.value and asking.picture is before


pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu",
    reason="this process compiles; lesson 07 under nbval runs the map there",
)
