"""``python -m course_lib.authoring.readme``: write the generated parts of README.md and docs/kernels.md.

Both pages get a table of kernels from the stored measurements. README also gets the buttons that open
the course in a browser. A test compares the committed pages with those that are generated here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from course_lib.authoring.repository import read_repository, write_badges
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.bench import measurement
from course_lib.bench.measurement import PART
from course_lib.bench.summary import PEER_MARGIN, compare_with_peers

PAGE = paths.ROOT / "README.md"
KERNELS_PAGE = paths.ROOT / "docs" / "kernels.md"
_KINDS = ("forward", "backward", "long_rows")
# for each page, the kinds of measurement in its table and the row lengths that are the table's columns
_TABLES = {
    PAGE: (_KINDS, (256, 1024, 4096, 4097, 8192, 32768, 65536, 262144)),
    KERNELS_PAGE: (tuple(f"{kind}{PART}" for kind in _KINDS), (256, 1024, 2048, 4096, 4097, 5120, 8192, 16384, 65536, 262144)),
}
_OPERATIONS = {
    "layer_norm": "LayerNorm forward",
    "rms_norm": "RMSNorm forward",
    "add_layer_norm": "add + LayerNorm",
    "add_rms_norm": "add + RMSNorm",
    "layer_norm_backward": "LayerNorm backward",
    "rms_norm_backward": "RMSNorm backward",
}
_LAUNCH = re.compile(r"(<!-- launch: [^\n]*-->\n).*?(<!-- end of launch -->)", re.DOTALL)
_BLOCK = re.compile(r"(<!-- kernels: [^\n]*-->\n).*?(<!-- end of kernels -->)", re.DOTALL)


def make_page(text: str, page: Path = PAGE, repository: str | None = None) -> str:
    """Return the text of ``page`` with a table of kernels from the newest stored measurements.

    README also gets buttons if the address of the repository is known.

    Args:
        repository: the address of the repository; None takes the one in pyproject.toml.

    Raises: CourseError if the marks are missing in ``text``, or if the kinds were not all measured on the same device with
        the same versions.
    """
    if not _BLOCK.search(text):
        raise CourseError(f"{paths.shown(page)}: the marks '<!-- kernels: ... -->' and '<!-- end of kernels -->' are missing.")
    if page == PAGE:
        if not _LAUNCH.search(text):
            raise CourseError(f"{paths.shown(page)}: the marks '<!-- launch: ... -->' and '<!-- end of launch -->' are missing.")
        badges = write_badges(read_repository() if repository is None else repository)
        launch = badges and f"\n**Without installing anything**, in a browser: {badges}\n"
        text = _LAUNCH.sub(lambda marks: f"{marks[1]}{launch}{marks[2]}", text)
    return _BLOCK.sub(lambda marks: f"{marks[1]}{write_kernels(*_TABLES[page])}{marks[2]}", text)


def write_kernels(kinds: tuple[str, ...], columns: tuple[int, ...]) -> str:
    """Return a table with one row per operation and one column per row length, and a sentence about the device and the versions.

    Raises: CourseError if the kinds were not all measured on the same device with the same versions of PyTorch and Triton.
    """
    results = [measurement.stored(kind) for kind in kinds]
    first = results[0]
    for kind, result in zip(kinds, results, strict=True):
        if result.device != first.device or any(result.versions[name] != first.versions[name] for name in ("torch", "triton")):
            raise CourseError(f"{kind} was measured on {result.device}, {kinds[0]} on {first.device}: one table cannot show both.")
    entries = [entry for result in results for entry in compare_with_peers(result) if entry["M"] > 16]
    cells = {(entry["op"].split(" ")[0], entry["N"]): entry for entry in entries}
    lines = [f"| N | {' | '.join(map(str, columns))} |", "|---" * (len(columns) + 1) + "|"]
    for op, name in _OPERATIONS.items():
        pairs = [_write_pair(cells.get((op, N))) for N in columns]
        lines.append(f"| {name} | {' | '.join(pairs)} |")
    compared = [entry for entry in entries if entry["to_peer"]]
    behind = sum(entry["to_peer"] > PEER_MARGIN for entry in compared)
    ahead = sum(entry["to_peer"] < 1 / PEER_MARGIN for entry in compared)
    versions = f"PyTorch {first.versions['torch'].split('+')[0]}, Triton {first.versions['triton']}"
    return (
        "\n".join(lines) + f"\n\n{first.label()}, {versions}, fp16. Of the {len(compared)} shapes with many "
        f"rows that were\ncompared the course's kernel is more than 2 % ahead at {ahead} and more than 2 % behind at {behind}.\n"
    )


def _write_pair(entry: dict | None) -> str:
    if entry is None:
        return "-"
    return f"**{entry['ours']:.2f}** {'-' if entry['peer_over_floor'] is None else format(entry['peer_over_floor'], '.2f')}"


def main() -> int:
    for page in _TABLES:
        before = page.read_text(encoding="utf-8")
        after = make_page(before, page)
        write_atomic(page, after)
        print(f"{page.name}: {'up to date' if after == before else 'written anew'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
