"""The goals of the course's own kernels: how close to the floor they should be, and that no other library is faster."""

from __future__ import annotations

from course_lib.bench import measurement, tables
from course_lib.bench.measurement import Measurement
from course_lib.bench.summary import compare_with_peers

CLASSES = ("256", "1k to 16k", "awkward", "32k", "64k to 256k", "16 x 256k", "1 x 256k")
_ADD = (1.04, 1.02, 1.10, 1.05, 1.10, None, None)
# time over floor, one number per class of CLASSES; None if there is no goal
GOALS: dict[str, tuple[float | None, ...]] = {
    "layer_norm": (1.03, 1.02, 1.10, 1.04, 1.10, 1.5, 2.5),
    "rms_norm": (1.02, 1.01, 1.08, 1.03, 1.05, 1.3, 2.5),
    "add_rms_norm": _ADD,
    "add_layer_norm": _ADD,
    "layer_norm_backward": (1.5, 1.15, 1.3, 1.25, 1.4, None, None),
    "rms_norm_backward": (1.3, 1.10, 1.2, 1.15, 1.25, None, None),
}


def shape_class(M: int, N: int) -> str | None:
    """Return the class of goals of M x N; None for a shape without a goal."""
    power_of_two = N & (N - 1) == 0
    if M <= 16:
        return {(16, 262144): "16 x 256k", (1, 262144): "1 x 256k"}.get((M, N))
    if 65536 <= N <= 262144:
        return "64k to 256k"
    if 1024 <= N <= 16384:
        return "1k to 16k" if power_of_two else "awkward"
    return {256: "256", 32768: "32k"}.get(N)


def goal(op: str, M: int, N: int) -> float | None:
    """Return the largest time over floor that meets the goal of ``op``, or None."""
    of_class = shape_class(M, N)
    goals = GOALS.get(op.split(" ")[0])
    return None if of_class is None or goals is None else goals[CLASSES.index(of_class)]


def compare_with_goals(result: Measurement) -> list[dict]:
    """Return the entries of :func:`~course_lib.bench.summary.compare_with_peers`, with goal, and with met, which is None without a goal."""
    entries = []
    for entry in compare_with_peers(result):
        limit = goal(entry["op"], entry["M"], entry["N"])
        entries.append(entry | {"goal": limit, "met": None if limit is None else entry["ours"] <= limit})
    return entries


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table that compares the course's kernels with the goals and with the best peer."""
    entries = compare_with_goals(result)
    met, ahead = ([e[key] for e in entries if e[key] is not None] for key in ("met", "ahead"))
    names = [["op", *(e["op"] for e in entries)], ["M x N", *(f"{e['M']} x {e['N']}" for e in entries)]]
    columns = [
        ["ours", *(f"{e['ours']:.3f}" for e in entries)],
        ["goal", *("-" if e["goal"] is None else f"{e['goal']:.2f}" for e in entries)],
        ["", *({True: "met", False: "MISSED", None: ""}[e["met"]] for e in entries)],
        ["best peer", *("-" if e["peer"] is None else f"{e['peer']} {e['peer_over_floor']:.2f}" for e in entries)],
        ["ours/peer", *("-" if e["to_peer"] is None else f"{e['to_peer']:.2f}" for e in entries)],
        ["", *("BEHIND" if e["ahead"] is False else "" for e in entries)],
    ]
    return "\n".join(
        [
            result.label(),
            *tables.paragraph("against the goals: time over floor, and no peer more than 2 % faster", width),
            *tables.in_blocks(names, columns, width),
            *tables.paragraph(
                f"{sum(met)} of {len(met)} goals met; level with the best peer, or ahead, at {sum(ahead)} of {len(ahead)} shapes", width
            ),
        ]
    )


if __name__ == "__main__":
    for kind in ("forward", "backward", "long_rows"):
        print(f"{table(measurement.stored(kind))}\n")
