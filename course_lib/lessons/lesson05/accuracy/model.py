"""Lesson 05: the error of each statistics kernel against mean/std, as plain data."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib import catalog
from course_lib.base import runtime as course_runtime
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_names
from course_lib.base.words import list_words
from course_lib.catalog import texts
from course_lib.grading import public as grading
from course_lib.grading.public import Case, Plan, Tensor, size_guard
from course_lib.norms import statistics

ALGORITHMS = {
    "one_pass": N_("one-pass"),
    "shifted": N_("shifted one-pass"),
    "two_pass": N_("two-pass"),
    "welford": "Welford",
}
OWN = {"05a": N_("your 05a"), "05b": N_("your 05b")}
_NAMES = ALGORITHMS | OWN
QUANTITIES = {"var": N_("variance"), "rstd": "rstd", "y": N_("LayerNorm output")}
ROWS = {"ordinary": N_("normal"), "loud": N_("first element far out")}
COLUMNS = (64, 512, 4096)
BLOCKS = (256, 1024)
RATIOS = tuple(10.0 ** (k / 2) for k in range(11))  # mean/std from 1 to 10^5
SAMPLES = 4  # rows per ratio; the picture shows the worst of them
EPS = 1e-5
# added to the first element of a "loud" row, in standard deviations of the others, before the row
# is scaled
_LOUD = 1000.0
# time limit of the learner's kernel for all rows of one setting, enough on a busy machine
_OWN_SECONDS = 30.0


@dataclass(frozen=True)
class Curve:
    """The errors of one kernel, one per ratio; NaN if the result is NaN or infinite.

    ``key`` is the kernel's algorithm or exercise, ``label`` the name in the picture.
    """

    key: str
    label: str
    errors: tuple[float, ...]


@dataclass(frozen=True)
class AccuracyState:
    """Curves over RATIOS, the bound of the chosen algorithm, and notes that say which curves are
    missing, and why."""

    curves: tuple[Curve, ...]
    bound: tuple[float, ...]
    notes: tuple[str, ...]


def data(n: int, rows: str = "ordinary") -> np.ndarray:
    """Return fp32 rows of shape (RATIOS x SAMPLES, n): standard deviation 1, and a mean close to
    each of RATIOS.

    The means are not round: the square of 1000 is exact in fp32 and would make the one-pass kernel
    look better than it is.

    The first element of a "loud" row is about sqrt(n - 1) standard deviations away from the mean,
    the farthest that an element of a row can be.
    """
    rng = np.random.default_rng(5)
    x = rng.standard_normal((len(RATIOS), SAMPLES, n))
    means = np.array(RATIOS)[:, None, None] * (1 + 0.1 * rng.random((len(RATIOS), SAMPLES, 1)))
    if rows == "loud":
        x[:, :, 0] += _LOUD
    x = (x - x.mean(axis=2, keepdims=True)) / x.std(axis=2, keepdims=True) + means
    return x.reshape(-1, n).astype(np.float32)


def errors(quantity: str, x: np.ndarray, mean: np.ndarray, var: np.ndarray) -> tuple[float, ...]:
    """Return for each ratio the largest error among its rows; NaN if a result is NaN or infinite.

    Args:
        quantity: "var" or "rstd" for relative errors; "y" for the absolute error of ``(x - mean) *
            rstd`` in fp32, whose values are around 1.
        x: the rows from ``data``.
        mean, var: fp32, one per row, as a kernel stored them.
    """
    exact = x.astype(np.float64)
    true_mean, true_var = exact.mean(axis=1), exact.var(axis=1)
    with np.errstate(all="ignore"):
        if quantity == "var":
            off = np.abs(var.astype(np.float64) - true_var) / true_var
        else:
            rstd = 1 / np.sqrt(var.astype(np.float32) + np.float32(EPS))
            true_rstd = 1 / np.sqrt(true_var + EPS)
            if quantity == "rstd":
                off = np.abs(rstd / true_rstd - 1)
            else:
                y = (x - mean.astype(np.float32)[:, None]) * rstd[:, None]
                off = np.abs(y - (exact - true_mean[:, None]) * true_rstd[:, None]).max(axis=1)
    off = np.where(np.isfinite(off), off, np.nan).reshape(len(RATIOS), SAMPLES)
    return tuple(float(worst) for worst in off.max(axis=1))  # max keeps a NaN


@functools.lru_cache(maxsize=64)
def course_statistics(
    algorithm: str, n: int, block: int, rows: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance as one of the course's kernels computes them, on this machine's
    device."""
    import torch

    import course_lib
    from course_lib.kernels.row_statistics import row_statistics

    x = torch.from_numpy(data(n, rows)).to(course_lib.DEVICE)
    mean, var = row_statistics(x, algorithm, block=block)
    return mean.cpu().numpy(), var.cpu().numpy()


@dataclass(frozen=True)
class OwnStatistics:
    """The result of a learner's kernel: mean and var, or a ``note`` that says why there is no
    result."""

    mean: np.ndarray | None = None
    var: np.ndarray | None = None
    note: str = ""


_own: dict[tuple[str, int, int, str, str], OwnStatistics] = {}


def own_statistics(exercise_id: str, n: int, block: int, rows: str) -> OwnStatistics:
    """Return mean and variance as the learner's kernel computes them, run as by the grader: in a
    separate process, with its limits.

    The file is read at each call, and run again only if its text has changed.
    """
    exercise = catalog.get(exercise_id)
    path = texts.find_file(exercise)
    try:
        text, kernels = grading.read_own_attempt(exercise)
    except (grading.NotAttempted, grading.Unreadable) as refused:
        return OwnStatistics(note=str(refused))
    key = (exercise_id, n, block, rows, hashlib.sha256(text.encode()).hexdigest())
    if key not in _own:
        _own[key] = _run(kernels, exercise.entry_points[0], n, block, rows, path.name)
    return _own[key]


def _run(
    kernels: grading.Kernels, entry_point: str, n: int, block: int, rows: str, file: str
) -> OwnStatistics:
    x = data(n, rows)
    M = len(x)
    case = Case("accuracy", M, n, block, "mean/std from 1 to 10^5")
    tensors = (
        Tensor("x", "fp32", (M, n), (n, 1), x, guard=size_guard(n + block)),
        *(Tensor(name, "fp32", (M,), (1,), guard=size_guard(block)) for name in ("mean", "var")),
    )
    arguments = ("x", "mean", "var", n, n)
    plan = Plan(case, entry_point, (M,), tensors, arguments, {"BLOCK": block}, {})
    try:
        mode = course_runtime.current().mode
        limits = grading.find_mode(mode).limits
        run = grading.run(
            kernels, [plan], mode, replace(limits, case=max(limits.case, _OWN_SECONDS))
        )
    except OSError as refused:
        return OwnStatistics(
            note=_("{file} could not be run: {problem}.").format(file=file, problem=refused)
        )
    if 0 not in run.data:
        return OwnStatistics(note=_why_not(run, file))
    results = {}
    for tensor in plan.tensors:
        piece = run.data[0][tensor.offset : tensor.offset + tensor.nbytes]
        if tensor.is_output:
            if tensor.find_unwritten(piece).any():
                return OwnStatistics(
                    note=_("{file} did not store {tensor} for every row.").format(
                        file=file, tensor=tensor.name
                    )
                )
            results[tensor.name] = tensor.read(piece).copy()
    return OwnStatistics(results["mean"], results["var"])


def _why_not(run: grading.Run, file: str) -> str:
    raised = run.import_error or run.errors.get(0)
    if raised is not None:
        where = (
            _("{file}, line {line}").format(file=file, line=raised.line) if raised.line else file
        )
        return f"{where}: {raised.type}: {' '.join(raised.text.split())[:300]}."
    too_long = _("{file} was stopped: it took too long.")
    reasons = {
        "timed out": too_long,
        "waited": too_long,
        "not started": _("{file} could not be started."),
    }
    return reasons.get(run.ended, _("{file} ended its process.")).format(file=file)


def bound(algorithm: str, quantity: str, n: int, block: int, x: np.ndarray) -> tuple[float, ...]:
    """Return for each ratio an upper bound on one algorithm's error, valid unless something over-
    or underflows.

    Every lane adds up its columns, then a tree adds up the lanes. ``depth`` is the number of
    additions that follow one another on the way from an element to the sum. To first order, the
    error of rstd is half of the variance's. The error of y is the row's largest |xhat| times the
    error of rstd, plus the error of the mean. Source: the bounds of
    ``course_lib.norms.statistics.bound``.
    """
    steps, levels = -(-n // block), (block - 1).bit_length()
    depth, u = steps - 1 + levels, 2.0**-24
    bounds = []
    for group in x.astype(np.float64).reshape(len(RATIOS), SAMPLES, n):
        shift = group[:, 0] if algorithm == "shifted" else np.zeros(SAMPLES)
        kappa = float(statistics.condition_number(group, shift).max())
        if algorithm == "welford":
            # for "chan", statistics.bound uses n only for the number of levels of merging
            off = statistics.bound("chan", block * steps, kappa, u, block=steps)
        else:
            off = statistics.bound(algorithm, depth + 1, kappa, u, "sequential")
        if quantity != "var":
            # 1 / sqrt(1 - off) - 1 is about off / 2 if off is small. If off >= 1, the variance may
            # come out as 0: no bound.
            off = (1 - off) ** -0.5 - 1 + 4 * u if off < 1 else np.inf
        if quantity == "y":
            std = group.std(axis=1)
            xhat = (np.abs(group - group.mean(axis=1, keepdims=True)).max(axis=1) / std).max()
            size = (np.abs(group).max(axis=1) / std).max()
            off = xhat * off + (statistics.gamma(depth + 4, u) * size + 4 * u * (xhat + 1)) * (
                1 + off
            )
        bounds.append(float(off))
    return tuple(bounds)


def model(
    quantity: str = "var",
    n: int = 512,
    block: int = 256,
    rows: str = "ordinary",
    chosen: str = "one_pass",
    learner_ids: Sequence[str] = (),
) -> AccuracyState:
    """Run the course's four streamed kernels, and the learner's kernels that ``learner_ids`` names,
    on rows with mean/std from 1 to 10^5.

    Args:
        quantity: "var", "rstd" or "y".
        n: columns of a row, one of COLUMNS.
        block: columns per step, one of BLOCKS.
        rows: "ordinary", or "loud" for rows whose first element lies far out.
        chosen: the algorithm whose bound is returned.
        learner_ids: any of "05a" and "05b".

    Raises: CourseError if an argument has another value.
    """
    check_settings(quantity, n, block, rows, chosen, learner_ids)
    x = data(n, rows)
    results, notes = _run_kernels(n, block, rows, learner_ids)
    curves = tuple(
        Curve(key, _NAMES[key], errors(quantity, x, mean, var))
        for key, (mean, var) in results.items()
    )
    return AccuracyState(curves, bound(chosen, quantity, n, block, x), tuple(notes))


def check_settings(
    quantity: str,
    n: int,
    block: int,
    rows: str = "ordinary",
    chosen: str = "one_pass",
    learner_ids: Sequence[str] = (),
) -> None:
    """Raise CourseError if an argument has a value that :func:`model` does not take."""
    valid = (
        quantity in QUANTITIES
        and n in COLUMNS
        and block in BLOCKS
        and rows in ROWS
        and chosen in ALGORITHMS
    )
    if not (valid and set(learner_ids) <= OWN.keys()):
        raise CourseError(
            _(
                "accuracy knows the quantities {quantities}, N of {columns}, BLOCK of {blocks}, the"
                " rows {known_rows} and the algorithms {algorithms}; you asked for {quantity!r},"
                " N={n}, BLOCK={block}, {rows!r}, {chosen!r}."
            ).format(
                quantities=list_words(QUANTITIES),
                columns=COLUMNS,
                blocks=BLOCKS,
                known_rows=list_words(ROWS),
                algorithms=list_words(ALGORITHMS),
                quantity=quantity,
                n=n,
                block=block,
                rows=rows,
                chosen=chosen,
            )
        )


def _run_kernels(
    n: int, block: int, rows: str, learner_ids: Sequence[str]
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], list[str]]:
    """Return mean and variance of each kernel by algorithm or exercise, and a note for each
    learner's kernel without a result."""
    results = {key: course_statistics(key, n, block, rows) for key in ALGORITHMS}
    notes = []
    for exercise_id in learner_ids:
        statistics_found = own_statistics(exercise_id, n, block, rows)
        if statistics_found.mean is None or statistics_found.var is None:
            notes.append(
                _("{name} gave nothing to draw: {note}").format(
                    name=_(OWN[exercise_id]), note=statistics_found.note
                )
            )
        else:
            results[exercise_id] = statistics_found.mean, statistics_found.var
    return results, notes


def make_data(quantity: str, n: int, block: int, learner_ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return all that the browser shows for one N and one BLOCK: every quantity, every kind of row,
    every bound.

    Raises: CourseError if an argument has a value that :func:`model` does not take.
    """
    check_settings(quantity, n, block, learner_ids=learner_ids)
    curves, bounds, notes = {}, {}, dict[str, None]()
    for rows in ROWS:
        x = data(n, rows)
        results, missing = _run_kernels(n, block, rows, learner_ids)
        notes |= dict.fromkeys(missing)
        for measure in QUANTITIES:
            curves[f"{measure}|{rows}"] = {
                key: [_shorten(error) for error in errors(measure, x, mean, var)]
                for key, (mean, var) in results.items()
            }
            for chosen in ALGORITHMS:
                bounds[f"{measure}|{rows}|{chosen}"] = [
                    _shorten(limit) for limit in bound(chosen, measure, n, block, x)
                ]
    return {
        "start": {"quantity": quantity, "rows": "ordinary", "chosen": "one_pass", "ratio": 6},
        "n": n, "block": block, "samples": SAMPLES, "ratios": RATIOS, "bounded": list(ALGORITHMS),
        "names": translate_names(_NAMES), "quantities": translate_names(QUANTITIES),
        "rows": translate_names(ROWS),
        "curves": curves, "bounds": bounds, "notes": list(notes),
    }  # fmt: skip


def _shorten(error: float) -> float:
    """Drop the digits that no picture shows."""
    return float(f"{error:.5g}")
