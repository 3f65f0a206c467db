"""Count how often the flag of a locked sum is wrong, in the form of the Triton tutorial and in two
repaired forms, and time the three.

In the tutorial's form each thread loads the flag and one thread stores it, and no barrier lies
between. In an ordinary run the warps are never far enough apart to show that. Here warps 1 and up
wait for 20 microseconds between the compare and swap and the load, and the buffers hold NaN before
the launch, so a warp that takes the wrong branch leaves NaN in its columns.

Each row has form (one of FORMS), N, num_warps, wait_us (0 or WAIT_US), runs and wrong (the number
of runs whose sums are wrong). A row with ``wait_us`` 0 also has M and us: the device time of one
call with M rows, the zeroing of the locks included.

python -m course_lib.authoring.bench.lock_race          measures on this machine's GPU, saves, prints the table
"""  # noqa: E501

from __future__ import annotations

import itertools
from typing import Any

import torch
import triton
import triton.language as tl

from course_lib.authoring.bench import run_as_script
from course_lib.bench import measurement, timing
from course_lib.bench.measurement import Measurement

KIND = "lock_race"
METHOD = (
    "64 rows of ones in 8 buffers of NaN; wait: warps 1 and up sleep between the compare and swap"
    " and the flag; us: device time, CUDA graph over 8 inputs, median of 12 replays, locks zeroed"
    " in the same call"
)
FORMS = ("load and store", "exchange", "load, barrier and store")
SHAPES = ((512, 4), (4096, 8))  # columns, warps
WAIT_US = 20
_ROWS, _GROUP = 64, 8
_RUNS = {0: 300, WAIT_US: 40}
_TIMED_ROWS, _TIMED_GROUP, _INPUTS = 4096, 128, 8


@triton.jit
def add_rows_kernel(
    x_ptr,                   # (M, N), fp32
    buffer_ptr,              # (GROUP, N), fp32, read and written
    lock_ptr,                # (2 * GROUP,), int32, all 0 at the start: locks, then flags
    N,
    GROUP: tl.constexpr,
    FORM: tl.constexpr,      # one of FORMS
    WAIT: tl.constexpr,      # whether warps 1 and up wait before the flag
    BLOCK: tl.constexpr,     # power of two >= N
):  # fmt: skip
    """Row r is added to buffer r % GROUP under a lock; the first to come stores instead, and sets
    the buffer's flag."""
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    total = tl.load(x_ptr + program.to(tl.int64) * N + cols, mask=mask, other=0.0)
    group = program % GROUP
    buffer = group * N + cols
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    flag_ptr = lock_ptr + GROUP + group
    if WAIT:
        # The result is 0. The flag's address depends on it, so that the flag is read after the
        # wait.
        flag_ptr += tl.inline_asm_elementwise(
            "{ .reg .pred late; .reg .u32 thread; mov.u32 thread, %tid.x; setp.ge.u32 late, "
            "thread, 32; "
            "@late nanosleep.u32 20000; mov.u32 $0, 0; }",
            "=r,r", [program], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    if FORM == "exchange":
        written = tl.atomic_xchg(flag_ptr, 1, sem="relaxed")
    else:
        written = tl.load(flag_ptr)
        if FORM == "load, barrier and store":
            tl.debug_barrier()
        if written == 0:
            tl.store(flag_ptr, 1)
    if written == 1:
        total += tl.load(buffer_ptr + buffer, mask=mask, other=0.0)
    tl.store(buffer_ptr + buffer, total, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def count_wrong(form: str, N: int, num_warps: int, *, wait: bool, runs: int) -> int:
    """Return how many of so many runs leave a wrong sum in some column. Needs a GPU."""
    x = torch.ones(_ROWS, N, device="cuda")
    wrong = 0
    for _ in range(runs):
        buffers = torch.full((_GROUP, N), float("nan"), device="cuda")
        add_rows(x, buffers, form, num_warps, wait=wait)
        wrong += not bool((buffers.sum(0) == _ROWS).all())
    return wrong


def add_rows(
    x: torch.Tensor, buffers: torch.Tensor, form: str, num_warps: int, *, wait: bool = False
) -> None:
    """Add the rows of x into the buffers."""
    (M, N), group = x.shape, len(buffers)
    locks = torch.zeros(2 * group, dtype=torch.int32, device=x.device)
    options: dict[str, Any] = {
        "GROUP": group,
        "FORM": form,
        "WAIT": wait,
        "BLOCK": triton.next_power_of_2(N),
        "num_warps": num_warps,
    }
    add_rows_kernel[(M,)](x, buffers, locks, N, **options)


def measure() -> Measurement:
    """Count wrong runs of each form and shape, with and without the wait, and time each form.

    Raises: CourseError without a GPU.
    """
    result = measurement.new(KIND, METHOD)
    for (N, num_warps), form, (wait_us, runs) in itertools.product(SHAPES, FORMS, _RUNS.items()):
        wrong = count_wrong(form, N, num_warps, wait=bool(wait_us), runs=runs)
        row = {
            "form": form,
            "N": N,
            "num_warps": num_warps,
            "wait_us": wait_us,
            "runs": runs,
            "wrong": wrong,
        }
        if not wait_us:
            row |= {"M": _TIMED_ROWS, "us": round(_time(form, N, num_warps), 2)}
        result.rows.append(row)
    return result


def _time(form: str, N: int, num_warps: int) -> float:
    inputs = [torch.randn(_TIMED_ROWS, N, device="cuda") for _ in range(_INPUTS)]
    buffers = torch.empty(_TIMED_GROUP, N, device="cuda")
    return timing.device_us([lambda x=x: add_rows(x, buffers, form, num_warps) for x in inputs])


def table(result: Measurement) -> str:
    """Write a line for each form and shape."""
    lines = [
        f"{row['form']:24} N {row['N']:5}, {row['num_warps']} warps, wait {row['wait_us']:2} us: "
        f"wrong in {row['wrong']} of {row['runs']}"
        + (f", {row['us']:.1f} us for {row['M']} rows" if "us" in row else "")
        for row in result.rows
    ]
    return "\n".join([result.label(), *lines])


if __name__ == "__main__":
    run_as_script(KIND, measure, table)
