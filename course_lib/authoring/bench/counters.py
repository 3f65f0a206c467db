"""Read the hardware's counters of the course's kernels with Nsight Compute, to see what limits a
kernel that is not at the floor.

A time shows that a kernel is slow; counters show why: the bytes that memory moved, the share of its
bandwidth, the resident warps, the load of the pipe between registers and L1 cache, and the reasons
why warps waited. Nsight Compute runs each kernel several times, alone and with empty caches, so its
times differ from those of the other measurements.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator

import torch

from course_lib.authoring.bench import run_as_script
from course_lib.base.errors import CourseError
from course_lib.bench import grid, operations, tables
from course_lib.bench.grid import Shape
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import DTYPES, OPERATIONS
from course_lib.bench.providers import PROVIDERS

KIND = "counters"
# the name of this module, which is "__main__" if it runs as a script
_MODULE = "course_lib.authoring.bench.counters"
_FOR_PROFILER = "--for-profiler"  # begins the command line of the profiled child
METHOD = (
    "Nsight Compute, one call of each kernel by itself with empty caches, the GPU's clocks left"
    " alone"
)
_PROVIDERS = ("ours",)
_FORWARD, _BACKWARD = ("layer_norm", "rms_norm"), ("layer_norm_backward", "rms_norm_backward")
# shapes at which the kernels are above the floor, and one at which they reach it, for comparison
CASES = [
    *(
        (op, Shape(M, N))
        for M, N in ((8192, 4096), (8192, 4095), (8192, 4097), (1024, 32768), (1024, 65536))
        for op in _FORWARD
    ),
    *((op, Shape(M, 262144)) for M in (256, 16, 1) for op in _FORWARD),
    *(
        (op, Shape(M, N))
        for M, N in ((8192, 4096), (8192, 4097), (2048, 16384), (256, 262144))
        for op in _BACKWARD
    ),
]
_STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "lg_throttle", "mio_throttle",
    "math_pipe_throttle", "membar", "wait", "drain",
    "not_selected", "sleeping",
)  # fmt: skip
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_COUNTERS = {
    "us": "gpu__time_duration.sum",
    "read_mb": "dram__bytes_read.sum",
    "written_mb": "dram__bytes_write.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "lsu_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "local_loads": "smsp__inst_executed_op_local_ld.sum",
}
_UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1.0, "Gbyte": 1e3}
# as older versions of the profiler write them
_UNITS |= {"nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3}
_MARK = "spin_kernel"  # the kernel of torch.cuda._sleep, which is launched before each call
_SECONDS = 900
_COLUMNS = {  # the table's columns: heading, and format of a cell
    "us": "{us:.1f}", "read MB": "{read_mb:.1f}", "written": "{written_mb:.1f}",
    "memory %": "{dram_percent:.0f}", "LSU %": "{lsu_percent:.0f}",
    "issue %": "{issue_percent:.0f}", "warps %": "{occupancy_percent:.0f}",
    "regs": "{registers:.0f}",
}  # fmt: skip


class NoProfiler(CourseError):
    """Nsight Compute is missing, or is not allowed to read counters."""


def measure(cases: Iterable[tuple[str, Shape]] = CASES, dtype: str = "fp16") -> Measurement:
    """Read, for each case, the counters of every kernel that one call of the course's own functions
    launches.

    Args:
        cases: pairs of an operation's name and a shape.
        dtype: "fp16", "bf16" or "fp32".

    Returns: rows with op, provider, M, N, dtype, kernel, the counters named in _COUNTERS, and
    ``stalls``: for each reason the average number of warps that wait for it whenever a warp issues
    an instruction.

    Raises: CourseError without a GPU or for an unknown dtype or operation; NoProfiler.
    """
    cases = list(cases)
    for op, _ in cases:
        if op not in OPERATIONS:
            raise CourseError(
                f"there is no operation {op!r} to measure. There are: {', '.join(OPERATIONS)}."
            )
    result, (ours,) = grid.begin(KIND, dtype, None, _PROVIDERS, whole=True, method=METHOD)
    ncu = shutil.which("ncu")
    if ncu is None:
        raise NoProfiler(
            "reading counters needs Nsight Compute, and there is no `ncu` on the PATH. It comes"
            " with the CUDA toolkit."
        )
    metrics = ",".join([*_COUNTERS.values(), *map(_STALL.format, _STALLS)])
    job = json.dumps([[op, shape.M, shape.N, dtype] for op, shape in cases])
    command = [
        ncu,
        "--clock-control",
        "none",
        "--profile-from-start",
        "off",
        "--metrics",
        metrics,
        "--csv",
        "--page",
        "raw",
    ]
    try:
        run = subprocess.run(
            [*command, sys.executable, "-m", _MODULE, _FOR_PROFILER, job],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise NoProfiler(f"`ncu` took longer than {_SECONDS} seconds.") from late
    kernels_by_case = list(parse_counters(run.stdout))
    if run.returncode or len(kernels_by_case) != len(cases):
        last_lines = "\n".join((run.stdout[-500:] + run.stderr[-1500:]).strip().splitlines()[-6:])
        hint = (
            " Reading counters may need the administrator's permission."
            if "ERR_NVGPUCTRPERM" in run.stdout + run.stderr
            else ""
        )
        raise NoProfiler(
            f"`ncu` ended with exit code {run.returncode}, after {len(kernels_by_case)} of"
            f" {len(cases)} cases.{hint} It said:\n{last_lines}"
        )
    for (op, shape), kernels in zip(cases, kernels_by_case, strict=True):
        for kernel in kernels:
            result.rows.append(
                {"op": op, "provider": ours.name, "M": shape.M, "N": shape.N, "dtype": dtype}
                | kernel
            )
    return result


def parse_counters(text: str) -> Iterator[list[dict]]:
    """Parse the output of ``ncu --csv --page raw``, and yield the kernels of each call. A marker
    kernel comes before those of each call.

    Raises: KeyError if a counter is missing, or has a unit that is not known here.
    """
    start = text.find('"ID"')
    if start < 0:
        return
    lines = csv.DictReader(io.StringIO(text[start:]))
    units = next(lines, {})
    kernels: list[dict] | None = None
    for line in lines:
        if _MARK in line["Kernel Name"]:
            if kernels is not None:
                yield kernels
            kernels = []
        elif kernels is not None:
            kernels.append(_make_row(line, units))
    if kernels is not None:
        yield kernels


def _make_row(line: dict[str, str], units: dict[str, str]) -> dict:
    def number(counter: str) -> float:
        return float(line[counter].replace(",", "") or 0)

    row: dict = {"kernel": line["Kernel Name"]}
    for name, counter in _COUNTERS.items():
        scale = _UNITS[units[counter]] if name == "us" or name.endswith("_mb") else 1.0
        row[name] = round(number(counter) * scale, 1)
    stalls = {reason: round(number(_STALL.format(reason)), 1) for reason in _STALLS}
    return row | {"stalls": dict(sorted(stalls.items(), key=lambda item: -item[1]))}


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table with one line per kernel, below the call that launches it."""
    kernels: list[str] = []
    rows: list[dict | None] = []  # None beside the name of a call
    for (op, M, N), launched in itertools.groupby(
        result.rows, key=lambda row: (row["op"], row["M"], row["N"])
    ):
        kernels.append(f"{op} {M} x {N}")
        rows.append(None)
        for row in launched:
            kernels.append(f"  {row['kernel'].removesuffix('_kernel')}")
            rows.append(row)
    columns = [
        [heading, *(form.format(**row) if row else "" for row in rows)]
        for heading, form in _COLUMNS.items()
    ]
    waits = (
        (
            ", ".join(f"{reason} {count:g}" for reason, count in list(row["stalls"].items())[:2])
            if row
            else ""
        )
        for row in rows
    )
    columns.append(["warps that wait, by reason", *waits])
    lines = tables.in_blocks([["kernel", *kernels]], columns, width)
    return "\n".join([*tables.paragraph(f"{result.label()}: {result.method}", width), *lines])


def _run_for_profiler(job: list) -> None:
    """Run as the profiled child: make every call once to compile, then again for the profiler,
    after a marker kernel."""
    prepare = PROVIDERS[_PROVIDERS[0]].load().prepare
    for op, M, N, dtype in job:
        values = operations.make(M, N, DTYPES[dtype], "cuda", 1, [OPERATIONS[op]])[0]
        call = prepare[op](values)
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        torch.cuda._sleep(1000)
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == [_FOR_PROFILER]:
        _run_for_profiler(json.loads(sys.argv[2]))
    else:
        run_as_script(KIND, measure, table)
