"""Which files are near-identical, with no judgement about it.

Winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: Local Algorithms for Document Fingerprinting", which MOSS uses): a file becomes
the row of its tokens with names, comments and spaces left out; each run of ``_RUN`` tokens has a hash, and of each ``_WINDOW`` hashes next to one
another the smallest is kept. Two files that share ``_RUN + _WINDOW - 1`` tokens in a row share a hash, wherever those stand. What the
course wrote is taken away first: the text of the exercise before anyone works on it.

A file is cut into tokens by one regular expression, which takes time in proportion to the text, whatever is in it; nothing is parsed.
"""

from __future__ import annotations

import keyword
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

ALIKE = 0.9  # of the hashes of both together
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
class Alike:
    """Learners whose files for an exercise share this part of their hashes, 0 to 1: all who have one and the same, or one of each of two such
    groups that are near."""

    learners: tuple[str, ...]
    shared: float


def take_fingerprint(data: bytes, given: frozenset[int] = frozenset()) -> frozenset[int]:
    """The hashes of a file, without those of ``given``, what the course wrote; empty if there are too few to say anything."""
    hashes = frozenset(_winnow(_list_runs(data[:_MOST_BYTES]))) - given
    return hashes if len(hashes) >= _FEWEST else frozenset()


def take_every_run(text: str) -> frozenset[int]:
    """The hashes of all runs of a text, so that whatever of it is chosen in a file can be taken away."""
    return frozenset(_list_runs(text.encode()))


def find_alike(fingerprints: Iterable[tuple[str, frozenset[int]]]) -> list[Alike]:
    """Return who has one and the same, all of them named, and which two files share :data:`ALIKE` or more; the most alike first."""
    same: dict[frozenset[int], list[str]] = defaultdict(list)
    for learner, hashes in fingerprints:
        if hashes:
            same[hashes].append(learner)
    found = [Alike(tuple(sorted(learners)), 1.0) for learners in same.values() if len(learners) > 1]
    by_size = sorted(same, key=len)
    for number, small in enumerate(by_size):
        for large in by_size[number + 1 :]:
            if len(small) < ALIKE * len(large):
                break  # and so are all that follow
            if (shared := share(small, large)) >= ALIKE:
                found.append(Alike(tuple(sorted((min(same[small]), min(same[large])))), shared))
    return _sort(found)


def merge_alike(before: Iterable[Alike], found: Iterable[Alike], compared: Collection[str]) -> list[Alike]:
    """Return what was found now and what an earlier comparison found; the most alike first.

    A group of before stays if it names somebody who is not among ``compared``, the learners whose files were compared now. A group that was
    found now and lies within such a group is left out.
    """
    kept = [one for one in before if not set(one.learners).issubset(compared)]
    return _sort([*kept, *(one for one in found if not any(set(one.learners).issubset(old.learners) for old in kept))])


def _sort(found: Iterable[Alike]) -> list[Alike]:
    return sorted(found, key=lambda one: (-one.shared, one.learners))


def describe_published(hashes: frozenset[int], published: Iterable[tuple[str, frozenset[int]]]) -> str:
    """Return which of the named texts a file is, or how much it is like the nearest; "" if it is like none."""
    shared, name = max(((share(hashes, known), name) for name, known in published), key=lambda one: one[0], default=(0.0, ""))
    if not hashes or shared < ALIKE:
        return ""
    return name if shared == 1 else f"{math.floor(100 * shared)} % like {name}"


def share(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the part of the hashes of both together that both have."""
    both = len(one & other)
    return both / max(len(one) + len(other) - both, 1)


def _list_runs(data: bytes) -> list[int]:
    tokens = []
    for match in _TOKEN.finditer(data.decode("utf-8-sig", "replace")):
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
