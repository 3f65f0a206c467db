"""The suite's own parts: what `make test` and `make sweep` run, and how a test's cost is
measured."""

from __future__ import annotations

import os
import subprocess
import sys

import cost
import pytest
from selection import choose_sweep, pick_evenly


class Item:
    """As much of a collected test as the choice looks at."""

    def __init__(self, nodeid: str, *marks: str):
        self.nodeid, self.marks = nodeid, marks

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


def test_the_parts_of_a_sweep_are_what_make_test_leaves_out_each_case_once():
    items = [Item(f"test_{n:02}", *(["sweep"] if n % 3 else [])) for n in range(50)]
    in_test, in_sweep = choose_sweep(None, items), choose_sweep("all", items)
    assert in_test | in_sweep == set(items) and not in_test & in_sweep and in_test and in_sweep
    parts = [choose_sweep(f"{number}/10", items) for number in range(1, 11)]
    assert set().union(*parts) == in_sweep and sum(map(len, parts)) == len(in_sweep)
    assert {len(part) for part in parts} <= {3, 4}


@pytest.mark.parametrize("part", ["0/10", "11/10", "3", "a/b", "1/", ""])
def test_a_part_that_is_none_is_refused_with_an_example(part):
    with pytest.raises(pytest.UsageError, match="give all, or a part such as 3/10"):
        choose_sweep(part, [])


@pytest.mark.parametrize(
    ("most", "picked"), [(1, [0]), (2, [0, 9]), (3, [0, 4, 9]), (99, list(range(10)))]
)
def test_few_cases_are_spread_over_all(most, picked):
    assert pick_evenly(list(range(10)), most) == picked


def test_the_cost_of_a_test_has_the_processes_that_it_starts():
    """One process is reaped before the second measurement, the other lives on."""
    spin = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\ninput()"
    before = cost.measure_process_tree(os.getpid())
    processes = [
        subprocess.Popen(
            (sys.executable, "-c", spin), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == b"\n"
    processes[0].communicate(b"\n")
    seconds = cost.measure_process_tree(os.getpid()) - before
    processes[1].communicate(b"\n")
    assert 0.75 <= seconds <= 3.0
