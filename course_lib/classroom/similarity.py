"""A search for files that are nearly identical. It does not judge whether a learner copied.

The method is winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: Local Algorithms for
Document Fingerprinting", which MOSS uses). A file becomes a sequence of tokens without comments and
spaces, in which all names that learners choose are equal. Each run of ``_RUN`` tokens has a hash.
Of each ``_WINDOW`` consecutive hashes the smallest is kept. Two files that share ``_RUN + _WINDOW -
1`` consecutive tokens anywhere share a hash. Hashes of the unsolved exercise, which the course
wrote, are removed.

One regular expression cuts a file into tokens, in time proportional to its length for every text.
The file is not parsed.
"""

from __future__ import annotations

import keyword
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

ALIKE = 0.9  # least shared part, of all hashes of two files, at which the files are reported
_RUN = 8
_WINDOW = 4
_FEWEST = 8  # a file with fewer hashes is too short to compare
_MOST_BYTES = 64 << 10
_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*|\\\n)
    |(?P<text>[rbfuRBFU]{0,2}(?:'''[\s\S]*?(?:'''|\Z)|\"\"\"[\s\S]*?(?:\"\"\"|\Z)|'(?:\\.|[^'\\\n])*'?|"(?:\\.|[^"\\\n])*"?))
    |(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<other>.)""",
    re.VERBOSE,
)
# names that tell what the code does: Python's keywords, and functions that exercises use; the
# learner chooses all other names
_KEPT = {
    *keyword.kwlist,
    *"tl torch np range len sum load store where mask mean rsqrt sqrt arange program_id".split(),
}


@dataclass(frozen=True)
class Alike:
    """Learners with similar files for an exercise. ``shared`` is the part of the hashes that the
    files share, 0 to 1.

    They are all learners with one set of hashes, or two learners with similar sets. Each of the two
    stands for all learners with that set.
    """

    learners: tuple[str, ...]
    shared: float


@dataclass(frozen=True)
class Resemblance:
    """The published text that a file is most like. ``words`` name it, with the percentage if the
    two are not equal; ``shared`` is the part of the hashes that they share, and ``size`` the number
    of the published text's hashes: the larger, the more choice its author had."""

    words: str = ""
    shared: float = 0.0
    size: int = 0


def take_fingerprint(data: bytes, course_hashes: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return the hashes of a file without ``course_hashes``, the hashes of the course's own text;
    an empty set if there are too few to compare."""
    hashes = frozenset(_winnow(_list_runs(data[:_MOST_BYTES]))) - course_hashes
    return hashes if len(hashes) >= _FEWEST else frozenset()


def take_every_run(text: str) -> frozenset[int]:
    """Return the hashes of all runs of a text. Any of them may be among a file's hashes, so all
    have to be removed from the file's."""
    return frozenset(_list_runs(text.encode()))


def find_alike(fingerprints: Iterable[tuple[str, frozenset[int]]]) -> list[Alike]:
    """Return the groups of learners with equal hashes, and the pairs whose files share
    :data:`ALIKE` or more; the most similar first."""
    same: dict[frozenset[int], list[str]] = defaultdict(list)
    for learner, hashes in fingerprints:
        if hashes:
            same[hashes].append(learner)
    groups = [
        Alike(tuple(sorted(learners)), 1.0) for learners in same.values() if len(learners) > 1
    ]
    by_size = sorted(same, key=len)
    for number, small in enumerate(by_size):
        for large in by_size[number + 1 :]:
            if len(small) < ALIKE * len(large):
                # the sets that follow are at least as large, so they share too little as well
                break
            if (shared := share(small, large)) >= ALIKE:
                groups.append(Alike(tuple(sorted((min(same[small]), min(same[large])))), shared))
    return _sort(groups)


def merge_alike(
    before: Iterable[Alike], new_groups: Iterable[Alike], compared: Collection[str]
) -> list[Alike]:
    """Return the groups of an earlier comparison together with those of the present one; the most
    similar first.

    An earlier group is kept if it has a learner who is not among ``compared``, the learners whose
    files are compared now. A new group is left out if a kept group has all its learners.

    Args:
        before: the groups of earlier comparisons.
        new_groups: the groups found now.
        compared: the names of the learners whose files are compared now.
    """
    kept_groups = [group for group in before if not set(group.learners).issubset(compared)]
    return _sort(
        [
            *kept_groups,
            *(
                group
                for group in new_groups
                if not any(set(group.learners).issubset(old.learners) for old in kept_groups)
            ),
        ]
    )


def _sort(groups: Iterable[Alike]) -> list[Alike]:
    return sorted(groups, key=lambda group: (-group.shared, group.learners))


def find_resemblance(
    hashes: frozenset[int], published: Iterable[tuple[str, frozenset[int]]]
) -> Resemblance:
    """Return which published text a file equals or is most like; without words if it is like
    none."""
    shared, name, size = max(
        ((share(hashes, text_hashes), name, len(text_hashes)) for name, text_hashes in published),
        key=lambda candidate: candidate[0],
        default=(0.0, "", 0),
    )
    if not hashes or shared < ALIKE:
        return Resemblance()
    words = name if shared == 1 else f"{math.floor(100 * shared)} % like {name}"
    return Resemblance(words, shared, size)


def share(hashes: frozenset[int], other_hashes: frozenset[int]) -> float:
    """Return the number of hashes that both sets have, divided by the number that at least one set
    has."""
    common = len(hashes & other_hashes)
    return common / max(len(hashes) + len(other_hashes) - common, 1)


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
    # crc32 is fast and equal on every machine; it need not resist attacks, because a collision is
    # of no use to a learner
    return [
        zlib.crc32("\0".join(tokens[n : n + _RUN]).encode()) for n in range(len(tokens) - _RUN + 1)
    ]


def _winnow(hashes: list[int]) -> Iterator[int]:
    for n in range(max(len(hashes) - _WINDOW + 1, 1)):
        if window := hashes[n : n + _WINDOW]:
            yield min(window)
