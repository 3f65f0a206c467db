"""A search for files that are nearly identical. It does not judge whether a learner copied.

Files of a class are compared by the values that they compute (``computed_values``). A value counts
the more, the fewer files have it (inverse document frequency, Spärck Jones 1972), because what
most files share is what the exercise forces. Files belong together if they share :data:`ALIKE` of
these weights, and if no other file comes within :data:`MARGIN` of it: single linkage, cut where a
group stands alone.

A file is compared with the published texts by what is written, with winnowing (Schleimer, Wilkerson
and Aiken 2003, "Winnowing: Local Algorithms for Document Fingerprinting", which MOSS uses): whoever
works an exercise out alone comes to the values of a right solution, but seldom to its lines. A file
becomes a sequence of tokens without comments and spaces, in which all names that learners choose
are equal. Each run of ``_RUN`` tokens has a hash. Of each ``_WINDOW`` consecutive hashes the
smallest is kept. Two files that share ``_RUN + _WINDOW - 1`` consecutive tokens anywhere share a
hash. One regular expression cuts a file into tokens, in time proportional to its length for every
text.

Values and hashes of the unsolved exercise, which the course wrote, are removed.
"""

from __future__ import annotations

import keyword
import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from course_lib.base.translation import mark as N_
from course_lib.classroom.computed_values import number_values

# Least shared part at which files are reported as much alike, and the distance that other files
# keep. A trial chose them: four made-up classes of 60 for each of 07a, 11a and 14a, with 12
# disguised copies in each; the commit that brought them has the figures.
ALIKE = 0.75
MARGIN = 0.1
_MOST_ALIKE = Fraction(1, 10)  # limit on a group, as a part of the class
_SMALL_GROUP = 4  # the limit in a small class
_FEWEST_VALUES = 8  # a file with fewer values of its own is too short to compare
PUBLISHED = 0.9  # least shared part, of all hashes of two files, at which a published text is named
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
    """Learners with similar files for an exercise. ``shared`` is the part, 0 to 1, that each of
    them shares with at least one of the others."""

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


def list_own_values(data: bytes, course_values: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return the values that a file computes without ``course_values``, those of the course's own
    text; an empty set if there are too few to compare."""
    values = number_values(data) - course_values
    return values if len(values) >= _FEWEST_VALUES else frozenset()


def find_alike(values_by_learner: Iterable[tuple[str, frozenset[int]]]) -> list[Alike]:
    """Return the groups of learners whose files share :data:`ALIKE` or more and stand apart from
    all other files by :data:`MARGIN`; the most similar first."""
    files = [(learner, values) for learner, values in values_by_learner if values]
    most = limit_alike(len(files))
    groups = [[learner] for learner, _ in files]
    formed_at = [0.0] * len(files)  # the least shared part within a group of several
    found = []

    def report(group: list[str], shared: float, nearest: float) -> None:
        if shared >= max(ALIKE, nearest + MARGIN) and len(group) <= most:
            found.append(Alike(tuple(sorted(group)), shared))

    group_of = list(range(len(files)))
    for shared, *pair in _list_near_pairs([values for _, values in files]):
        first, second = (group_of[number] for number in pair)
        if first != second:
            for number in (first, second):
                report(groups[number], formed_at[number], shared)
            groups[first] += groups[second]
            groups[second] = []
            formed_at[first], formed_at[second] = shared, 0.0
            group_of = [first if number == second else number for number in group_of]
    for group, shared in zip(groups, formed_at, strict=True):
        report(group, shared, 0.0)
    return _sort(found)


def limit_alike(count: int) -> int:
    """Return how many of ``count`` files for an exercise may be alike. What more of them share is
    what the exercise forces, and says nothing about anybody."""
    return max(_SMALL_GROUP, math.floor(_MOST_ALIKE * count))


def _list_near_pairs(files: Sequence[frozenset[int]]) -> list[tuple[float, int, int]]:
    """Return shared part and numbers of all pairs that may form a group or limit one; the most
    similar first. A value weighs the more, the fewer other files have it."""
    counts = Counter(value for values in files for value in values)
    weights = {value: math.log(len(files) / max(count - 1, 1)) for value, count in counts.items()}
    totals = [math.fsum(weights[value] for value in values) for values in files]
    pairs = []
    for (first, values), (second, other_values) in combinations(enumerate(files), 2):
        common = math.fsum(weights[value] for value in values & other_values)
        whole = totals[first] + totals[second] - common
        if common >= (ALIKE - MARGIN) * whole > 0:
            pairs.append((common / whole, first, second))
    return sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))


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
    if not hashes or shared < PUBLISHED:
        return Resemblance()
    like = N_("{percent} % like {name}").format(percent=math.floor(100 * shared), name=name)
    words = name if shared == 1 else like
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
