"""The goals of the course's own kernels: how close to the floor they should be, and that no other
library is faster."""

from __future__ import annotations

from course_lib.authoring.bench import field
from course_lib.bench import measurement, tables
from course_lib.bench.measurement import Measurement
from course_lib.bench.summary import compare_with_peers

CLASSES = ("up to 8k", "16k", "awkward", "32k and 64k", "128k and 256k", "16 x 256k", "1 x 256k")
# a pass over rows of the first class may take this long beyond its goal, because each call has one
# launch at least
LAUNCH_US = 1.0
_ADD = (1.01, 1.02, 1.10, 1.05, 1.05, None, None)
# time over floor, one number per class of CLASSES; None if there is no goal
GOALS: dict[str, tuple[float | None, ...]] = {
    "layer_norm": (1.01, 1.02, 1.10, 1.05, 1.05, 1.5, 2.5),
    "rms_norm": (1.01, 1.01, 1.08, 1.05, 1.05, 1.3, 2.5),
    "add_rms_norm": _ADD,
    "add_layer_norm": _ADD,
    "layer_norm_backward": (1.05, 1.15, 1.3, 1.15, 1.4, None, None),
    "rms_norm_backward": (1.05, 1.10, 1.2, 1.10, 1.25, None, None),
}


def shape_class(M: int, N: int) -> str | None:
    """Return the class of goals of M x N; None for a shape without a goal."""
    if M <= 16:
        return {(16, 262144): "16 x 256k", (1, 262144): "1 x 256k"}.get((M, N))
    if N & (N - 1) and N % 4096:
        return "awkward" if 1024 <= N <= 16384 else None
    ends = {8192: "up to 8k", 16384: "16k", 65536: "32k and 64k", 262144: "128k and 256k"}
    return next((name for end, name in ends.items() if end >= N), None) if N >= 256 else None


def goal(op: str, M: int, N: int, floor: float) -> float | None:
    """Return the largest time over floor that meets the goal of ``op``, or None. ``floor`` is in
    microseconds."""
    of_class = shape_class(M, N)
    goals = GOALS.get(op.split(" ")[0])
    limit = None if of_class is None or goals is None else goals[CLASSES.index(of_class)]
    return limit + LAUNCH_US / floor if limit is not None and of_class == CLASSES[0] else limit


def compare_with_goals(result: Measurement) -> list[dict]:
    """Return the entries of :func:`~course_lib.bench.summary.compare_with_peers`, with goal, and
    with met, which is None without a goal."""
    floors = {(row["op"], row["M"], row["N"]): row["us"] / row["over_floor"] for row in result.rows}
    entries = []
    for entry in compare_with_peers(result):
        shape = entry["op"], entry["M"], entry["N"]
        limit = goal(*shape, floors[shape])
        entries.append(
            entry | {"goal": limit, "met": None if limit is None else entry["ours"] <= limit}
        )
    return entries


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table that compares the course's kernels with the goals and with the best peer."""
    entries = compare_with_goals(result)
    goals_met, ahead = ([e[key] for e in entries if e[key] is not None] for key in ("met", "ahead"))
    names = [
        ["op", *(e["op"] for e in entries)],
        ["M x N", *(f"{e['M']} x {e['N']}" for e in entries)],
    ]
    columns = [
        ["ours", *(f"{e['ours']:.3f}" for e in entries)],
        ["goal", *("-" if e["goal"] is None else f"{e['goal']:.3f}" for e in entries)],
        ["", *({True: "met", False: "MISSED", None: ""}[e["met"]] for e in entries)],
        [
            "best peer",
            *(
                "-" if e["peer"] is None else f"{e['peer']} {e['peer_over_floor']:.2f}"
                for e in entries
            ),
        ],
        ["ours/peer", *("-" if e["to_peer"] is None else f"{e['to_peer']:.2f}" for e in entries)],
        ["", *("BEHIND" if e["ahead"] is False else "" for e in entries)],
    ]
    return "\n".join(
        [
            result.label(),
            *tables.paragraph(
                "against the goals: time over floor, and no peer more than 2 % faster", width
            ),
            *tables.in_blocks(names, columns, width),
            *tables.paragraph(
                f"{sum(goals_met)} of {len(goals_met)} goals met; level with the best peer, or"
                f" ahead, at {sum(ahead)} of {len(ahead)} shapes",
                width,
            ),
        ]
    )


if __name__ == "__main__":
    newest = [measurement.stored(kind) for kind in ("forward", "backward", "long_rows")]
    for result in (*newest, *measurement.read_all([field.KIND])):
        print(f"{result.kind}: {table(result)}\n")
