"""The benchmark tables of Triton's tutorial "Layer Normalization": GB/s of a backward pass by row
length, and the times that follow.

The English and the Chinese edition each have a table of the tutorial's kernels and of PyTorch, from
different runs. Neither names its GPU, its clocks or its versions; both were copied in November
2026. Source: https://triton-lang.org/main/getting-started/tutorials/05-layer-norm.html
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words

FILE = paths.BENCH_RESULTS / "published-layer-norm-backward.csv"
# rows, bytes of an fp16 number, and the matrices that the tutorial counts: x and dy read, dx
# written
M, ITEMSIZE, MATRICES = (4096, 2, 3)
EDITIONS = (N_("English"), N_("Chinese"))


@dataclass(frozen=True)
class Published:
    """One line of a table: the printed GB/s of the tutorial's kernels ("triton") and of PyTorch
    ("torch")."""

    edition: str
    N: int
    triton: float
    torch: float

    def us(self, provider: str) -> float:
        """Return the microseconds of one call, from the GB/s and the bytes that the tutorial
        counts.

        Raises: KeyError if the provider is neither "triton" nor "torch".
        """
        gbps = {"triton": self.triton, "torch": self.torch}[provider]
        return MATRICES * M * self.N * ITEMSIZE / gbps * 1e-3


def read_published(edition: str = "English") -> list[Published]:
    """Read the table of an edition, by row length.

    Raises: CourseError if there is no such edition, or the file cannot be read.
    """
    if edition not in EDITIONS:
        raise CourseError(
            _(
                "the tutorial's tables are of the editions {editions}; you asked for {edition!r}."
            ).format(editions=list_words(EDITIONS), edition=edition)
        )
    try:
        with FILE.open(encoding="utf-8", newline="") as opened:
            lines = [line for line in csv.DictReader(opened) if line["edition"] == edition]
        return [
            Published(
                edition, int(line["N"]), float(line["triton_gbps"]), float(line["torch_gbps"])
            )
            for line in lines
        ]
    except (OSError, KeyError, ValueError) as broken:
        raise CourseError(
            _("{file} cannot be read ({error}). `git checkout -- {file}` brings it back.").format(
                file=paths.shown(FILE), error=broken
            )
        ) from broken
