"""A set of timings with everything that is needed to interpret them: device, versions, date and
method."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.translation import gettext as _

# over several lines, without other texts than words
_LIST_OF_SCALARS = re.compile(r'\[\n[^][{}"]*(?:"\w*"[^][{}"]*)*\]')
# suffix of the kind of a measurement with only some columns or providers, so that it is not
# mistaken for a whole one
PART = "_part"


class Unavailable(CourseError):
    """This machine lacks something that only one kind of measurement needs."""


@dataclass
class Measurement:
    """A measurement. ``rows`` are dictionaries whose keys the measuring module explains; ``live``:
    it was taken just now.

    ``untimed`` are dictionaries for cases without a time. They have provider, state and note, and
    if they are about one shape also op, M, N and dtype. States: "absent" (not installed), "refused"
    (the provider does not take the shape), "wrong" (wrong values), "error".
    """

    kind: str
    device: str
    date: str
    versions: dict[str, str]
    method: str
    rows: list[dict] = field(default_factory=list)
    untimed: list[dict] = field(default_factory=list)
    live: bool = False

    def label(self) -> str:
        """Write the origin of the numbers for a figure: the device, and "now" or the date."""
        words = _("{device}, measured now") if self.live else _("{device}, measured {date}")
        return words.format(device=self.device, date=self.date)

    def only(
        self, columns: Collection[int] | None = None, providers: Collection[str] | None = None
    ) -> Measurement:
        """Return the same measurement with only some row lengths and providers; None keeps all."""

        def is_selected(entry: dict) -> bool:
            return (columns is None or entry.get("N") is None or entry["N"] in columns) and (
                providers is None or entry["provider"] in providers
            )

        return replace(
            self,
            rows=list(filter(is_selected, self.rows)),
            untimed=list(filter(is_selected, self.untimed)),
        )

    def save(self) -> Path:
        """Write the measurement to bench/results/, in a file named after kind, device and date."""
        name = f"{self.kind}-{'-'.join(self.device.lower().split())}-{self.date}.json"
        path = paths.BENCH_RESULTS / name
        data = asdict(self)
        del data["live"]
        text = _LIST_OF_SCALARS.sub(
            lambda match: " ".join(match[0].split()), json.dumps(data, indent=1)
        )
        write_atomic(path, text + "\n")
        return path


def new(kind: str, method: str, versions: dict[str, str] | None = None) -> Measurement:
    """Return an empty measurement of this machine's first GPU, dated today.

    Args:
        versions: versions of measured libraries besides Python, PyTorch and Triton.

    Raises: CourseError without a GPU.
    """
    if course_lib.MODE != "gpu":
        raise CourseError(
            _(
                "measuring needs a GPU, and this machine runs in CPU mode. `course doctor` says"
                " why; `course bench --stored` shows what was measured."
            )
        )
    import torch
    import triton

    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    } | (versions or {})
    return Measurement(
        kind, torch.cuda.get_device_name(0), date.today().isoformat(), versions, method, live=True
    )


def row(*, us: float, moved: int, floor: float, **names) -> dict:
    """Make one row: ``names``, then us (one call), gbps (the bytes that have to move, over that
    time) and over_floor.

    Args:
        us: the time of one call.
        moved: the bytes that the operation has to move.
        floor: the time of the fastest elementwise pass over as many bytes, same run.
        names: op, provider, M, N, dtype and any other keys that distinguish this row.
    """
    return {
        **names,
        "us": round(us, 2),
        "gbps": round(moved / us * 1e-3),
        "over_floor": round(us / floor, 3),
    }


def is_stored(kind: str) -> bool:
    """Return whether there is a file of a measurement of ``kind``, readable or not."""
    return any(paths.BENCH_RESULTS.glob(f"{kind}-*.json"))


def stored(kind: str) -> Measurement:
    """Read the newest stored measurement of ``kind``.

    Raises: CourseError if there is none, or its file cannot be read.
    """
    files = sorted(paths.BENCH_RESULTS.glob(f"{kind}-*.json"), key=_date)
    if not files:
        raise CourseError(
            _("there is no stored measurement {kind!r} in {folder}. Take one on a GPU.").format(
                kind=kind, folder=paths.shown(paths.BENCH_RESULTS)
            )
        )
    return _read(files[-1])


def read_all(kinds: Collection[str]) -> list[Measurement]:
    """Read every stored measurement of ``kinds``, of any device and dtype, whole or in part, the
    newest first.

    Raises: CourseError if a file cannot be read.
    """
    files = [path for kind in kinds for path in paths.BENCH_RESULTS.glob(f"{kind}[-_]*.json")]
    return [_read(path) for path in sorted(files, key=_date, reverse=True)]


def _date(path: Path) -> str:
    return path.stem[-10:]


def _read(path: Path) -> Measurement:
    try:
        return Measurement(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as broken:
        raise CourseError(
            _("{file} cannot be read ({error}). `git checkout -- {file}` brings it back.").format(
                file=paths.shown(path), error=broken
            )
        ) from broken
