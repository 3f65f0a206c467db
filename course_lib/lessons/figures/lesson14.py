"""The figures of lesson 14: the parts of a norm, the bugs that each test sees, the training speed with each norm, and where a step's time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.own_kernels import NormPart
from course_lib.lessons.pictures.chart.model import Bar, Bars, Box, Boxes, Cells, View, chart

PROVIDERS = {"ours": "the course's kernels", "torch": "PyTorch's norm", "typed": "typed op by op"}
_NAMES = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
_LOOKS = {"ours": "ours", "torch": "torch", "typed": "tutorial"}
_SHORT = {"torch": "PyTorch", "ours": "the course"}
_MODES = {"eager": "eager", "graph": "in one CUDA graph", "compiled": "compiled"}
_OTHER_PARTS = (("other kernels", "masked"), ("the GPU waits", "paper"))
_LEAST_GAP = 0.005  # ms; a shorter gap between two kernels is too narrow to be seen


def show_parts(parts: Sequence[NormPart]) -> MovingPicture:
    """Show the data flow through the four parts of a norm, forward and backward, and mark the parts that are the learner's."""
    own = {part.exercise: part.own for part in parts}
    count = sum(own.values())

    def box(x: float, y: float, width: float, height: float, exercise: str, role: str) -> Box:
        whose = f"yours, {exercise}" if own[exercise] else "the course's"
        return Box(x, y, width, height, f"{role}\n{whose}", "done" if own[exercise] else "waiting", at_top=role == "wiring")

    boxes = [
        box(1.5, 0, 4.6, 5.6, "14a", "wiring"),  # around the other parts, because all data goes in and out through the wiring
        box(2.95, 1.4, 1.7, 1.5, "08a", "forward"),
        box(1.85, 3.6, 1.7, 1.5, "11a", "dx"),
        box(4.05, 3.6, 1.7, 1.5, "13b", "dw and db"),
        *(Box(x, y, 1.3, 1, words, "") for x, y, words in ((0, 1.6, "x, w, b"), (6.3, 1.6, "y"), (6.3, 3.8, "dy"), (0, 3.8, "dx, dw, db"))),
    ]
    whose = "; ".join(
        f"{part.role}: {f'yours, {part.exercise}' if part.own else f'the course’s, because {part.why}'}".rstrip(".") for part in parts
    )
    title = f"A norm of four parts: {count} of them yours" if count else "A norm of four parts"
    return chart(View(title, [Boxes(boxes, [(4, 0), (0, 5), (6, 0), (0, 7)], 7.6)]), alt=f"The parts of the norm. {whose}.")


def show_seen(table: Mapping[str, Mapping[str, bool]]) -> MovingPicture:
    """Show a grid with a row per bug and a column per test; a cell says whether the test sees the bug.

    Args:
        table: for each bug and each test, both in words, whether the test fails on the bug.
    """
    tests = list(next(iter(table.values())))
    complete = [test for test in tests if all(row[test] for row in table.values())]
    words = [["sees it" if sees else "passes" for sees in row.values()] for row in table.values()]
    looks = [["done" if sees else "waiting" for sees in row.values()] for row in table.values()]
    told = " ".join(f"{bug}: seen by {', '.join(t for t, sees in row.items() if sees)}." for bug, row in table.items())
    return chart(
        View(
            f"{complete[0]} sees every bug" if complete else "No test sees every bug",
            [Cells(list(table), tests, words, looks, "rows: bugs; columns: tests")],
        ),
        alt=f"A grid of {len(table)} bugs and the tests that see them. {told}",
    )


def show_speed(measured: Measurement) -> MovingPicture:
    """Show tokens per second: a bar for each norm and provider, eager and compiled.

    Args:
        measured: has rows with ``norm``, ``provider``, ``compiled`` and ``tokens_per_s``.
    """
    groups: dict[str, list[Bar]] = {}
    for row in sorted(measured.rows, key=lambda row: (row["compiled"], row["norm"], list(PROVIDERS).index(row["provider"]))):
        group = f"{_NAMES[row['norm']]}, {'compiled' if row['compiled'] else 'eager'}"
        speed = row["tokens_per_s"] / 1e3
        groups.setdefault(group, []).append(Bar(PROVIDERS[row["provider"]], [(speed, _LOOKS[row["provider"]])], f"{speed:,.0f}"))
    told = "; ".join(f"{group}: {', '.join(f'{bar.name} {bar.words}' for bar in bars)}" for group, bars in groups.items())
    speeds = {(row["norm"], row["compiled"], row["provider"]): row["tokens_per_s"] for row in measured.rows}
    shares = [speed / speeds[(*key, "torch")] for (*key, provider), speed in speeds.items() if provider == "ours"]
    size = measured.rows[0]
    words = f"whole training, {size['layers']} layers, norms over {size['M']} x {size['N']}, {size['dtype']}"
    return chart(
        View(
            f"With the course's kernels the training runs at {min(shares):.0%} to {max(shares):.0%} of PyTorch's speed",
            [Bars(list(groups.items()), "thousand tokens per second")],
            f"{words[0].upper()}{words[1:]}. {measured.label()}.",
        ),
        alt=f"Bars. Thousand tokens per second of the {words}: {told}.",
    )


def show_profile(measured: Measurement) -> MovingPicture:
    """Show one training step of the small model with LayerNorm: a lane per mode and provider, with its norms, its other kernels and the gaps.

    Args:
        measured: has the rows of ``authoring/bench/profile.py``.
    """
    groups: dict[str, list[Bar]] = {mode: [] for mode in _MODES}
    idle: dict[tuple[str, str], str] = {}
    told = []
    for row in measured.rows:
        if (row["size"], row["norm"]) != ("small", "layer_norm"):
            continue
        mode, provider = row["mode"], row["provider"]
        idle[mode, provider] = f"{row['idle_ms']:.1f}"
        words = f"{idle[mode, provider]} of {row['span_ms']:.1f}"
        groups[mode].append(Bar(_SHORT[provider], _list_stretches(row["pieces"], _LOOKS[provider]), words))
        told.append(f"{_MODES[mode]}, {_SHORT[provider]}: {words} ms, norms {row['kinds']['norm']:.1f} ms")
    return chart(
        View(
            f"In one CUDA graph the GPU waits {idle['graph', 'ours']} ms per step; eager it waits {idle['eager', 'torch']} ms with PyTorch's "
            f"norm and {idle['eager', 'ours']} with the course's",
            [
                Bars(
                    [(_MODES[mode], bars) for mode, bars in groups.items()],
                    "time from left to right; beside each bar: ms that the GPU waits, of the ms of one step with LayerNorm",
                    parts=[*((f"norm of {name}", _LOOKS[provider]) for provider, name in _SHORT.items()), *_OTHER_PARTS],
                    edges=False,
                )
            ],
            f"Under the profiler, which slows the host. {measured.label()}.",
        ),
        alt=f"A timeline of one step for each norm and mode. Of one step the GPU waits: {'; '.join(told)}.",
    )


def _list_stretches(pieces: Sequence[tuple[float, float, str]], norm: str) -> list[tuple[float, str]]:
    """Return length (ms) and colour of each stretch of a step: norms in the colour ``norm``, other kernels, and gaps of _LEAST_GAP or more."""
    stretches: list[tuple[float, str]] = []
    reached = 0.0
    for start, end, kind in pieces:
        colour = norm if kind == "norm" else _OTHER_PARTS[0][1]
        if start - reached >= _LEAST_GAP:
            stretches.append((round(start - reached, 3), _OTHER_PARTS[1][1]))
            reached = start
        if end > reached:
            before = stretches.pop()[0] if stretches and stretches[-1][1] == colour else 0.0
            stretches.append((round(before + end - reached, 3), colour))
            reached = end
    return stretches


def find_host_costs() -> dict[str, int]:
    """Return the host's microseconds for a forward and backward call of LayerNorm in fp16, by provider ("ours", "torch"), as stored.

    Raises: CourseError if nothing is stored.
    """
    wanted = {"op": "layer_norm", "passes": "forward and backward", "dtype": "fp16"}
    rows = [row for row in measurement.stored("host").rows if wanted.items() <= row.items()]
    return {row["provider"]: round(row["us"]) for row in rows if row["provider"] in ("ours", "torch")}
