"""Which files are near-identical, with no judgement about it.

Winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: Local Algorithms for Document Fingerprinting", which MOSS uses): a file becomes
the row of its tokens with names, comments and spaces left out; each run of ``_RUN`` tokens has a hash, and of each ``_WINDOW`` hashes next to one
another the smallest is kept. Two files that share ``_RUN + _WINDOW - 1`` tokens in a row share a hash, wherever those stand. What the
course wrote is taken away first: the text of the exercise before anyone works on it.

A file is cut into tokens by one regular expression, which takes time in proportion to the text, whatever is in it; nothing is parsed.
"""

from __future__ import annotations

import itertools
import keyword
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ALIKE = 0.9  # of the hashes of both together
MOST_ALIKE = 10  # learners with one and the same text; more of them is a common answer
_RUN = 8
_WINDOW = 4
_FEWEST = 8  # hashes; less is too little to say anything
_MOST_BYTES = 64 << 10
_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*|\\\n)
    |(?P<text>[rbfuRBFU]{0,2}(?:'''[\s\S]*?(?:'''|\Z)|\"\"\"[\s\S]*?(?:\"\"\"|\Z)|'(?:\\.|[^'\\\n])*'?|"(?:\\.|[^"\\\n])*"?))
    |(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<other>.)""",
    re.VERBOSE,
)
# a language's words, and what the exercises are about, tell what the code does; other names are the learner's to choose
_KEPT = frozenset(keyword.kwlist) | {
    "tl",
    "torch",
    "np",
    "range",
    "len",
    "sum",
    "load",
    "store",
    "where",
    "mask",
    "mean",
    "rsqrt",
    "sqrt",
    "arange",
    "program_id",
}


@dataclass(frozen=True)
class Pair:
    """Two learners whose files for an exercise share this part of their hashes, 0 to 1."""

    exercise: str
    first: str
    second: str
    shared: float


@dataclass(frozen=True)
class Common:
    """So many learners have files for an exercise that share all: it is how the exercise is solved, and not listed in pairs."""

    exercise: str
    learners: int


def take_fingerprint(data: bytes, given: frozenset[int] = frozenset()) -> frozenset[int]:
    """The hashes of a file, without those of ``given``, what the course wrote; empty if there are too few to say anything."""
    hashes = frozenset(_winnow(_list_runs(data[:_MOST_BYTES]))) - given
    return hashes if len(hashes) >= _FEWEST else frozenset()


def take_every_run(text: str) -> frozenset[int]:
    """The hashes of all runs of a text, so that whatever of it is chosen in a file can be taken away."""
    return frozenset(_list_runs(text.encode()))


def find_pairs(exercise: str, fingerprints: Iterable[tuple[str, frozenset[int]]]) -> tuple[list[Pair], list[Common]]:
    """Every two learners whose files share :data:`ALIKE` or more, the most alike first; and what too many have in common."""
    same: dict[frozenset[int], list[str]] = defaultdict(list)
    for learner, hashes in fingerprints:
        if hashes:
            same[hashes].append(learner)
    common = [Common(exercise, len(learners)) for learners in same.values() if len(learners) > MOST_ALIKE]
    few = {hashes: learners for hashes, learners in same.items() if len(learners) <= MOST_ALIKE}
    pairs = [_pair(exercise, a, b, 1.0) for learners in few.values() for a, b in itertools.combinations(learners, 2)]
    by_size = sorted(few, key=len)
    for number, small in enumerate(by_size):
        for large in by_size[number + 1 :]:
            if len(small) < ALIKE * len(large):
                break  # and so are all that follow
            both = len(small & large)
            shared = both / (len(small) + len(large) - both)
            if shared >= ALIKE:
                pairs += [_pair(exercise, a, b, shared) for a in few[small] for b in few[large]]
    pairs.sort(key=lambda pair: (-pair.shared, pair.first, pair.second))
    return pairs, sorted(common, key=lambda one: -one.learners)


def _pair(exercise: str, one: str, other: str, shared: float) -> Pair:
    return Pair(exercise, min(one, other), max(one, other), shared)


def _list_runs(data: bytes) -> list[int]:
    tokens = []
    for match in _TOKEN.finditer(data.decode("utf-8", "replace")):
        match match.lastgroup:
            case "blank":
                continue
            case "name":
                tokens.append(match.group() if match.group() in _KEPT else "name")
            case "text":
                tokens.append("text")
            case _:
                tokens.append(match.group())
    # crc32: the same on every machine, and fast; nobody gains by two runs with one hash
    return [zlib.crc32("\0".join(tokens[n : n + _RUN]).encode()) for n in range(len(tokens) - _RUN + 1)]


def _winnow(hashes: list[int]) -> Iterator[int]:
    for n in range(max(len(hashes) - _WINDOW + 1, 1)):
        if window := hashes[n : n + _WINDOW]:
            yield min(window)
