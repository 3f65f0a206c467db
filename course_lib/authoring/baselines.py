"""``python -m course_lib.authoring.baselines [07a ...]``: compare what the battery and what usual tests catch of the mutants.

The grader checks every mutant in CPU mode. Three tests as they are usually written check it, too. Two have normal values around 0 and a
power of two as N; their tolerances are 1e-4 and 1e-2. The third is the Triton tutorial's: N = 8192, fp16, x around -2.3 with a standard
deviation of 0.5, tolerance 1e-2. Its M is 4 instead of 1151, which in the interpreter changes the time and nothing else.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from course_lib import catalog
from course_lib.authoring import mutants, verdicts
from course_lib.base import paths
from course_lib.catalog import Exercise
from course_lib.grading.cases.plan import Plan
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.families import find_parts
from course_lib.grading.judging.judge import judge
from course_lib.grading.submission.attempt import extract
from course_lib.grading.submission.source import Unreadable

_WORKERS = 2


@dataclass(frozen=True)
class Baseline:
    """A test as it is usually written: one shape, one distribution, one flat tolerance."""

    name: str
    N: int
    dtype: str
    mean: float
    std: float
    tolerance: float


BASELINES = (
    Baseline("randn 1e-4", 1024, "fp32", 0.0, 1.0, 1e-4),
    Baseline("randn 1e-2", 1024, "fp32", 0.0, 1.0, 1e-2),
    Baseline("tutorial", 8192, "fp16", -2.3, 0.5, 1e-2),
)


def make_baseline_plans(exercise: Exercise, baseline: Baseline) -> list[Plan]:
    """Return the plan of the baseline's only case for each entry point, with the battery's weights, launches and oracles."""
    made = []
    for entry_point, part in find_parts(exercise).items():
        like = part.battery[0]
        resident = all(case.one_block for case in part.battery)
        block = 0 if not like.block else baseline.N if resident else baseline.N // 4
        case = replace(
            like, name=baseline.name, M=1 if like.vector else 4, N=baseline.N, block=block, dtype=baseline.dtype, w_dtype="", rows=1,
            mean=baseline.mean, std=baseline.std, eps=1e-5, fill="normal", layout="packed", leading=(), why="a usual test",
        )  # fmt: skip
        made.append(part.planner(case, entry_point, np.random.default_rng(0)))
    return made


def passes(exercise: Exercise, text: str, baseline: Baseline) -> bool:
    """Return whether a solution's ``text`` passes the baseline."""
    mode = "cpu" if exercise.kind == "kernel" else exercise.kind
    try:
        code = extract(exercise, text, verdicts.FILE)
    except Unreadable:
        return False
    concrete = make_baseline_plans(exercise, baseline)
    run = runner.run(code, concrete, mode)
    if len(run.data) != len(concrete):
        return False
    for number, plan in enumerate(concrete):
        for name, actual in judge(plan, run.data[number]).outputs.items():
            if not np.allclose(actual, plan.expected[name].values, rtol=baseline.tolerance, atol=baseline.tolerance):
                return False
    return True


def try_mutant(exercise: Exercise, entry: dict) -> dict[str, bool]:
    """Return whether the grader refuses the mutant, whether it names the right cause, and whether each baseline catches the mutant."""
    text = mutants.make_text(exercise, entry)
    with tempfile.TemporaryDirectory(prefix="course-baselines-") as scratch:
        file = Path(scratch) / verdicts.FILE
        file.write_text(text, encoding="utf-8")
        verdict = check(exercise, file, mode="cpu")
    wanted = entry.get("cause_cpu", entry["cause"])
    result = {"refused": verdict.status in ("fail", "error"), "right cause": verdict.cause == wanted}
    return result | {baseline.name: not passes(exercise, text, baseline) for baseline in BASELINES}


def main(wanted: list[str]) -> int:
    pairs = [(exercise, entry) for exercise, entry in mutants.list_mutants() if not wanted or exercise.id in wanted]
    for exercise_id in dict.fromkeys(exercise.id for exercise, _ in pairs):
        exercise = catalog.get(exercise_id)
        right = (paths.SOLUTIONS / f"{exercise.file}.py").read_text(encoding="utf-8")
        for baseline in BASELINES:
            if not passes(exercise, right, baseline):
                print(f"note: {baseline.name} refuses the right solution of {exercise_id}")
    with ThreadPoolExecutor(_WORKERS) as pool:
        rows = list(pool.map(lambda pair: try_mutant(*pair), pairs))
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (exercise, _), result in zip(pairs, rows, strict=True):
        for line in (exercise.id, "all"):
            counts[line]["mutants"] += 1
            for column, happened in result.items():
                counts[line][column] += happened
    columns = list(counts["all"])
    print("exercise".ljust(10) + "".join(column.rjust(14) for column in columns))
    for line in [*sorted(counts.keys() - {"all"}), "all"]:
        print(line.ljust(10) + "".join(str(counts[line][column]).rjust(14) for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
