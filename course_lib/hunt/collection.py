"""All hunts: ``hunts.json``, which ``python -m course_lib.authoring.hunts`` builds from the wrong
solutions of the tests.

The file is packed only so that a person who opens it by accident does not read an answer. It is a
game, and not a secret.
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
_ABOUT = (
    "Built by `python -m course_lib.authoring.hunts`. Packed so that nobody reads an answer by"
    " accident; it is a game, and no secret."
)


@dataclass(frozen=True)
class Hunt:
    """One kernel with one mistake.

    Attributes:
        id: its exercise and a name without meaning: "07a-lusab".
        text: the kernel as it is shown, without comments; its lines count from 1.
        lines: numbers of the wrong lines; each of them is a right answer.
        cause: the grader's name of the mistake.
        mutant: the wrong solution from which the hunt was made.
        cases: number of the grader's cases; ``killers`` of them show the mistake.
        probe: the smallest of the grader's inputs that shows the mistake.
        starter: open to every learner from the beginning.
        daily: reserved for the hunts of the day, so that no learner has seen it before.
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
        """Return the source text to run."""
        return IMPORTS + self.text

    @property
    def grader_needs(self) -> float:
        """Return how many cases the grader tries until one shows the mistake: the mean over all
        orders of its cases."""
        return (self.cases + 1) / (self.killers + 1)

    @property
    def level(self) -> int:
        """Return the difficulty, 1 to 3: the fewer cases show the mistake, the higher."""
        return 1 if self.grader_needs < 2 else 2 if self.grader_needs < 5 else 3


@functools.cache
def read_hunts() -> dict[str, Hunt]:
    """Read every hunt by id, in the order of the course."""
    return {
        hunt.id: hunt for hunt in map(_parse, _unpack(FILE.read_text(encoding="utf-8"))["hunts"])
    }


def read_built() -> dict[str, Any]:
    """Read everything in the file, with "digests" and "measured", for the program that builds
    it."""
    return _unpack(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def pack(hunts: list[Hunt], digests: dict[str, str], measured: dict[str, Any]) -> str:
    """Write the text of the file. ``digests`` has by exercise a digest of all that its hunts depend
    on, ``measured`` the results of running the wrong solutions."""
    built = {"hunts": [asdict(hunt) for hunt in hunts], "digests": digests, "measured": measured}
    data = json.dumps(built, sort_keys=True).encode()
    packed = base64.b64encode(zlib.compress(data, 9)).decode()
    return json.dumps({"about": _ABOUT, "packed": textwrap.wrap(packed, 120)}, indent=1) + "\n"


def _unpack(text: str) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode("".join(json.loads(text)["packed"]))))


def _parse(entry: dict[str, Any]) -> Hunt:
    return Hunt(
        **entry | {"lines": tuple(entry["lines"]), "probe": Probe.from_dict(entry["probe"])}
    )
