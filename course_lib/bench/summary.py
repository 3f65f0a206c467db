"""A short summary of each kind of measurement, which compares the course's kernels with the best
other ones."""

from __future__ import annotations

from collections.abc import Iterable

from course_lib.base.translation import gettext as _
from course_lib.bench import tables
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PEERS

_COLUMNS = 4  # number of row lengths that fit beside the longest name
PEER_MARGIN = 1.02  # a peer may be faster by this factor, because two runs differ by as much
# the course's choice, or the design that it would choose if "ours" was not timed
_OWN = ("ours", "resident", "persistent", "split")


def summary(kind: str, result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a few lines about ``result``, a measurement of ``kind``, in any dtype."""
    lines = {"host": _host, "training": _training, "statistics": _statistics}.get(
        kind, _over_floor
    )(result, width)
    return "\n".join(
        [
            f"{kind}: {result.label()}",
            *(lines if result.rows else [_("there are no times in this selection")]),
        ]
    )


def compare_with_peers(result: Measurement) -> list[dict]:
    """Make one entry per shape and operation: op, M, N, ours, peer (the best), peer_over_floor,
    to_peer and ahead.

    The last four are None without a peer. Shapes that were timed without the course's kernels are
    left out.
    """
    shapes: dict[tuple, dict[str, float]] = {}
    for row in result.rows:
        shapes.setdefault((row["op"], row["M"], row["N"]), {})[row["provider"]] = row["over_floor"]
    entries = []
    for (op, M, N), times in shapes.items():
        our_time = next((times[name] for name in _OWN if name in times), None)
        if our_time is not None:
            entries.append(
                {"op": op, "M": M, "N": N, "ours": our_time, **_find_best_peer(our_time, times)}
            )
    return sorted(
        entries,
        key=lambda e: (
            list(OPERATIONS).index(e["op"].split(" ")[0]),
            -e["M"] * (e["N"] >= 65536),
            e["N"],
        ),
    )


def _find_best_peer(our_time: float, times: dict[str, float]) -> dict:
    peer = min((name for name in PEERS if name in times), key=times.__getitem__, default=None)
    if peer is None:
        return dict.fromkeys(("peer", "peer_over_floor", "to_peer", "ahead"))
    return {
        "peer": peer,
        "peer_over_floor": times[peer],
        "to_peer": our_time / times[peer],
        "ahead": our_time / times[peer] <= PEER_MARGIN,
    }


def _over_floor(result: Measurement, width: int) -> list[str]:
    entries = compare_with_peers(result)
    lengths = _spread({e["N"] for e in entries})
    cells = [
        ((e["op"],), e["N"], _pair(e["ours"], e["peer_over_floor"], 2))
        for e in entries
        if e["N"] in lengths
    ]
    ahead = [e["ahead"] for e in entries if e["ahead"] is not None]
    return [
        _("time over floor, the course's kernel / the best other library's"),
        *tables.cells(cells, (), "N =", width),
        *(
            [
                _(
                    "level with the best other library, or ahead, at {ahead_count} of {count} "
                    "shapes"
                ).format(ahead_count=sum(ahead), count=len(ahead))
            ]
            if ahead
            else []
        ),
    ]


def _host(result: Measurement, width: int) -> list[str]:
    cells = []
    for (op, passes), times in _by(("op", "passes"), result.rows, "us").items():
        if "ours" in times:
            cells.append(
                (
                    (op,),
                    passes,
                    _pair(
                        times["ours"], min((times[p] for p in PEERS if p in times), default=None), 0
                    ),
                )
            )
    return [
        _("microseconds of an eager call, the course's operator / the best other library's"),
        *tables.cells(cells, (), "", width),
    ]


def _training(result: Measurement, width: int) -> list[str]:
    cells = []
    for (norm, compiled), times in _by(("norm", "compiled"), result.rows, "ms").items():
        cells.append(
            (
                (norm,),
                "compiled" if compiled else "eager",
                _pair(times["ours"], times.get("torch"), 1),
            )
        )
    return [
        _("milliseconds of a training step, with the course's norm / PyTorch's"),
        *tables.cells(cells, (), "", width),
    ]


def _statistics(result: Measurement, width: int) -> list[str]:
    times = _by(("dtype", "N"), result.rows, "over_floor")
    lengths = _spread({N for _, N in times})
    cells = []
    for (dtype, N), by_provider in times.items():
        if N in lengths:
            cells.append(
                (
                    (dtype,),
                    N,
                    _pair(
                        min(time for name, time in by_provider.items() if name != "torch"),
                        by_provider.get("torch"),
                        2,
                    ),
                )
            )
    return [
        _("time over floor, the fastest kernel of the course / torch.var_mean"),
        *tables.cells(cells, (), "N =", width),
    ]


def _by(
    names: tuple[str, ...], rows: Iterable[dict], quantity: str
) -> dict[tuple, dict[str, float]]:
    """Return the quantity of each provider, for each combination of values of the keys
    ``names``."""
    quantities: dict[tuple, dict[str, float]] = {}
    for row in rows:
        quantities.setdefault(tuple(row[name] for name in names), {})[row["provider"]] = row[
            quantity
        ]
    return quantities


def _pair(our_value: float, peer_value: float | None, digits: int) -> str:
    return f"{our_value:.{digits}f} / {'-' if peer_value is None else f'{peer_value:.{digits}f}'}"


def _spread(columns: Iterable[int]) -> list[int]:
    """Choose a few row lengths from the shortest to the longest, powers of two if there are
    enough."""
    columns = sorted(columns)
    powers = [N for N in columns if N & (N - 1) == 0]
    columns = powers if len(powers) >= _COLUMNS else columns
    if len(columns) <= _COLUMNS:
        return columns
    return [columns[n * (len(columns) - 1) // (_COLUMNS - 1)] for n in range(_COLUMNS)]
