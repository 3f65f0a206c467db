"""The hunts there are: ``hunts.json``, which ``python -m course_lib.authoring.hunts`` builds from the wrong solutions of the tests.

The file is packed so that nobody who opens it by accident reads an answer. That is all: it is a game, and no secret.
"""

from __future__ import annotations

import base64
import functools
import json
import textwrap
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.catalog import Exercise
from course_lib.hunt.probe import Probe

FILE = Path(__file__).with_name("hunts.json")
IMPORTS = "import triton\nimport triton.language as tl\n\n\n"
_ABOUT = "Built by `python -m course_lib.authoring.hunts`. Packed so that nobody reads an answer by accident; it is a game, and no secret."


@dataclass(frozen=True)
class Hunt:
    """One kernel with one thing wrong.

    Attributes:
        id: its exercise and a name that says nothing: "07a-lusab".
        text: the kernel as it is shown, without comments; its lines count from 1.
        lines: those of them that are wrong; any one of them is the answer.
        cause: as the grader names it.
        mutant: the wrong solution that it was made of.
        cases: how many cases the grader has; ``killers`` of them show the mistake.
        probe: an input that shows it, the smallest of those.
        starter: open to everybody from the beginning.
        daily: kept for the hunts of the day, so that nobody has met it before.
    """

    id: str
    exercise_id: str
    text: str
    lines: tuple[int, ...]
    cause: str
    mutant: str
    cases: int
    killers: int
    probe: Probe
    starter: bool = False
    daily: bool = False

    @property
    def exercise(self) -> Exercise:
        return catalog.get(self.exercise_id)

    @property
    def source(self) -> str:
        """What is run."""
        return IMPORTS + self.text

    @property
    def grader_needs(self) -> float:
        """How many of its cases the grader tries until one shows the mistake: the mean over all orders in which it could try them."""
        return (self.cases + 1) / (self.killers + 1)

    @property
    def level(self) -> int:
        """1 to 3: how few inputs show it."""
        return 1 if self.grader_needs < 2 else 2 if self.grader_needs < 5 else 3


@functools.cache
def read_hunts() -> dict[str, Hunt]:
    """Every hunt by id, in the order of the course."""
    return {hunt.id: hunt for hunt in map(_parse, _unpack(FILE.read_text(encoding="utf-8"))["hunts"])}


def read_built() -> dict[str, Any]:
    """All that the file holds, for who builds it: "digests" and "measured", too."""
    return _unpack(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def pack(hunts: list[Hunt], digests: dict[str, str], measured: dict[str, Any]) -> str:
    """The text of the file. ``digests`` say by exercise what its hunts follow from, ``measured`` what a run of a wrong solution showed."""
    built = {"hunts": [asdict(hunt) for hunt in hunts], "digests": digests, "measured": measured}
    data = json.dumps(built, sort_keys=True).encode()
    packed = base64.b64encode(zlib.compress(data, 9)).decode()
    return json.dumps({"about": _ABOUT, "packed": textwrap.wrap(packed, 120)}, indent=1) + "\n"


def _unpack(text: str) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode("".join(json.loads(text)["packed"]))))


def _parse(entry: dict[str, Any]) -> Hunt:
    return Hunt(**entry | {"lines": tuple(entry["lines"]), "probe": Probe.from_dict(entry["probe"])})
