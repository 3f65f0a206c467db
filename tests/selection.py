"""Which of the collected tests a run takes: `make test`, a part of `make sweep`, or a few cases of
each dear test."""

from __future__ import annotations

import pytest


def chooses_tests(config: pytest.Config) -> bool:
    """Return whether an option leaves out some of the tests that the arguments name."""
    option = config.option
    return bool(
        option.keyword or option.markexpr or option.sweep or option.of_each or option.maxfail
    )


def pick_evenly(cases: list, most: int) -> list:
    """Return at most ``most`` of the cases, the first, the last and those evenly between."""
    return [
        case
        for number, case in enumerate(cases)
        if number in {n * (len(cases) - 1) // max(most - 1, 1) for n in range(most)}
    ]


def choose_sweep(part: str | None, items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the items of a run: those without the mark ``sweep`` if ``part`` is None, else a part
    of those that have it.

    Args:
        part: "all", or "K/N": of N parts the one with number K, 1 to N. An item's place in the
            order of all node ids decides its part, so that each part has cases of every test.

    Raises: pytest.UsageError if ``part`` is neither.
    """
    marked = sorted(
        (item for item in items if item.get_closest_marker("sweep")), key=lambda item: item.nodeid
    )
    if part is None:
        return set(items) - set(marked)
    if part == "all":
        return set(marked)
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(
            f"--sweep={part}: give all, or a part such as 3/10, the third of ten"
        )
    return set(marked[int(number) - 1 :: int(count)])
