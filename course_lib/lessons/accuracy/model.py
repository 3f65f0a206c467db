"""Lesson 05: how far each statistics kernel is from the truth, against mean/std, on the course's kernels and on the reader's own: what is shown, as plain data."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from course_lib import catalog
from course_lib.base import runtime as course_runtime
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.grading import public as grading
from course_lib.grading.public import Case, Plan, Tensor, size_guard
from course_lib.lessons.words import format_number
from course_lib.norms import statistics

ALGORITHMS = {"one_pass": "one-pass", "shifted": "shifted one-pass", "two_pass": "two-pass", "welford": "Welford"}
OWN = {"05a": "your 05a", "05b": "your 05b"}
QUANTITIES = {"var": "variance", "rstd": "rstd", "y": "LayerNorm output"}
ROWS = {"ordinary": "normal", "loud": "first element far out"}
COLUMNS = (64, 512, 4096)
BLOCKS = (256, 1024)
RATIOS = tuple(10.0 ** (k / 2) for k in range(11))  # mean/std from 1 to 10^5
SAMPLES = 4  # rows for each ratio; the worst of them is shown
EPS = 1e-5
FLOOR = 1e-9  # an error below it is drawn there
CEILING = 1e4  # and one above it, NaN included, there
_LOUD = 1000.0  # how far out the first element is put, in standard deviations of the others; then the row is scaled
_OWN_SECONDS = 30.0  # for all rows of one setting, on a busy machine


@dataclass(frozen=True)
class Curve:
    """The errors of one kernel, one a ratio; NaN where the result is NaN. ``key`` is its algorithm or exercise, ``label`` its name."""

    key: str
    label: str
    errors: tuple[float, ...]


@dataclass(frozen=True)
class AccuracyState:
    """What the figure shows: curves over RATIOS, the bound of the chosen algorithm, the chosen ratio, and what could not be drawn."""

    quantity: str
    n: int
    block: int
    rows: str
    chosen: str
    ratio: int
    curves: tuple[Curve, ...]
    bound: tuple[float, ...]
    notes: tuple[str, ...]

    def error(self, key: str) -> float:
        """The error of one curve at the chosen ratio.

        Raises: KeyError if no curve has that key.
        """
        return {curve.key: curve.errors for curve in self.curves}[key][self.ratio]


def data(n: int, rows: str = "ordinary") -> np.ndarray:
    """SAMPLES rows of n fp32 numbers with standard deviation 1 and about each of RATIOS for a mean, (RATIOS x SAMPLES, n).

    The means are no round numbers: the square of 1000 is exact in fp32, and would flatter the one-pass kernel.

    "loud" rows begin with an element about sqrt(n - 1) standard deviations away from the mean: no element of a row can be
    farther out than that.
    """
    rng = np.random.default_rng(5)
    x = rng.standard_normal((len(RATIOS), SAMPLES, n))
    means = np.array(RATIOS)[:, None, None] * (1 + 0.1 * rng.random((len(RATIOS), SAMPLES, 1)))
    if rows == "loud":
        x[:, :, 0] += _LOUD
    x = (x - x.mean(axis=2, keepdims=True)) / x.std(axis=2, keepdims=True) + means
    return x.reshape(-1, n).astype(np.float32)


def errors(quantity: str, x: np.ndarray, mean: np.ndarray, var: np.ndarray) -> tuple[float, ...]:
    """The worst error of each ratio's rows; NaN where a result is NaN or infinite.

    Args:
        quantity: "var" and "rstd": relative. "y": absolute, of ``(x - mean) * rstd`` in fp32, whose values are around 1.
        x: as ``data`` gives it.
        mean, var: fp32, one a row: what a kernel stored.
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
def course_statistics(algorithm: str, n: int, block: int, rows: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance by one of the course's kernels, on this machine's device."""
    import torch

    import course_lib
    from course_lib.kernels.row_statistics import row_statistics

    x = torch.from_numpy(data(n, rows)).to(course_lib.DEVICE)
    mean, var = row_statistics(x, algorithm, block=block)
    return mean.cpu().numpy(), var.cpu().numpy()


@dataclass(frozen=True)
class Own:
    """What a reader's kernel gave: mean and var, or ``note``, which says in words why it gave none."""

    mean: np.ndarray | None = None
    var: np.ndarray | None = None
    note: str = ""


_own: dict[tuple[str, int, int, str, str], Own] = {}


def own_statistics(exercise_id: str, n: int, block: int, rows: str) -> Own:
    """Mean and variance by the reader's kernel, run as the grader runs it: in a process of its own, under its limits.

    The file is read each time, and run again only if it changed.
    """
    exercise = catalog.get(exercise_id)
    path = texts.find_file(exercise)
    try:
        text, kernels = grading.read_own_attempt(exercise)
    except (grading.NotAttempted, grading.Unreadable) as refused:
        return Own(note=str(refused))
    key = (exercise_id, n, block, rows, hashlib.sha256(text.encode()).hexdigest())
    if key not in _own:
        _own[key] = _run(kernels, exercise.entry_points[0], n, block, rows, path.name)
    return _own[key]


def _run(kernels: grading.Kernels, entry_point: str, n: int, block: int, rows: str, file: str) -> Own:
    x = data(n, rows)
    M = len(x)
    case = Case("accuracy", M, n, block, "mean/std from 1 to 10^5")
    tensors = (
        Tensor("x", "fp32", (M, n), (n, 1), x, guard=size_guard(n + block)),
        *(Tensor(name, "fp32", (M,), (1,), guard=size_guard(block)) for name in ("mean", "var")),
    )
    arguments = (("tensor", "x"), ("tensor", "mean"), ("tensor", "var"), ("int", n), ("int", n))
    plan = Plan(case, entry_point, (M,), tensors, arguments, {"BLOCK": block}, {})
    try:
        mode = course_runtime.current().mode
        limits = grading.ResourceLimits.for_mode(mode)
        run = grading.run(kernels, [plan], mode, replace(limits, case=max(limits.case, _OWN_SECONDS)))
    except OSError as refused:
        return Own(note=f"{file} could not be run: {refused}.")
    if 0 not in run.data:
        return Own(note=_why_not(run, file))
    results, start = {}, 0
    for tensor in tensors:
        piece = run.data[0][start : start + tensor.nbytes]
        start += tensor.nbytes
        if tensor.is_output:
            if tensor.find_unwritten(piece).any():
                return Own(note=f"{file} did not store {tensor.name} for every row.")
            results[tensor.name] = tensor.read(piece).copy()
    return Own(results["mean"], results["var"])


def _why_not(run: grading.Run, file: str) -> str:
    raised = run.import_error or run.errors.get(0)
    if raised is not None:
        where = f"{file}, line {raised['line']}" if raised["line"] else file
        return f"{where}: {raised['type']}: {' '.join(raised['text'].split())[:300]}."
    how = {"timed out": "was stopped: it took too long", "not started": "could not be started"}.get(
        run.ended, "ended its process"
    )
    return f"{file} {how}."


def bound(algorithm: str, quantity: str, n: int, block: int, x: np.ndarray) -> tuple[float, ...]:
    """What the error of one algorithm cannot pass, one number a ratio, as long as nothing over- or underflows.

    Every lane adds up its columns, then the lanes are added up as a tree: that many additions lie on top of one another.
    Half of the variance's error is rstd's, to first order, and a row's largest |xhat| times that is y's, to which the
    error of the mean comes. Source: the bounds of ``course_lib.norms.statistics.bound``.
    """
    steps, levels = -(-n // block), (block - 1).bit_length()
    depth, u = steps - 1 + levels, 2.0**-24
    found = []
    for group in x.astype(np.float64).reshape(len(RATIOS), SAMPLES, n):
        shift = group[:, 0] if algorithm == "shifted" else np.zeros(SAMPLES)
        kappa = float(statistics.condition_number(group, shift).max())
        if algorithm == "welford":
            # n of statistics.bound only sets how many levels of merging there are
            off = statistics.bound("chan", block * steps, kappa, u, block=steps)
        else:
            off = statistics.bound(algorithm, depth + 1, kappa, u, "sequential")
        if quantity != "var":
            # 1 / sqrt(1 - off) - 1 is off / 2 for a small one, and no limit once the variance may come out as 0
            off = (1 - off) ** -0.5 - 1 + 4 * u if off < 1 else np.inf
        if quantity == "y":
            std = group.std(axis=1)
            xhat = (np.abs(group - group.mean(axis=1, keepdims=True)).max(axis=1) / std).max()
            size = (np.abs(group).max(axis=1) / std).max()
            off = xhat * off + (statistics.gamma(depth + 4, u) * size + 4 * u * (xhat + 1)) * (1 + off)
        found.append(float(off))
    return tuple(found)


def model(
    quantity: str = "var",
    n: int = 512,
    block: int = 256,
    rows: str = "ordinary",
    chosen: str = "one_pass",
    ratio: int = 6,
    own: Sequence[str] = (),
) -> AccuracyState:
    """Run the course's four streamed kernels, and those of the reader's that ``own`` names, on rows of mean/std 1 to 10^5.

    Args:
        quantity: "var", "rstd" or "y".
        n, block: columns of a row, one of COLUMNS, and columns a step, one of BLOCKS.
        rows: "ordinary", or "loud" for rows whose first element lies far out.
        chosen: the algorithm whose bound is drawn.
        ratio: the index in RATIOS that the words are about.
        own: of "05a" and "05b".

    Raises: CourseError if an argument is outside those.
    """
    known = quantity in QUANTITIES and n in COLUMNS and block in BLOCKS and rows in ROWS and chosen in ALGORITHMS
    if not (known and 0 <= ratio < len(RATIOS) and set(own) <= OWN.keys()):
        raise CourseError(
            f"accuracy knows the quantities {', '.join(QUANTITIES)}, N of {COLUMNS}, BLOCK of {BLOCKS}, the rows {', '.join(ROWS)}, the algorithms "
            f"{', '.join(ALGORITHMS)} and {len(RATIOS)} ratios; you asked for {quantity!r}, N={n}, BLOCK={block}, {rows!r}, {chosen!r}, ratio {ratio}."
        )
    x = data(n, rows)
    curves = [
        Curve(key, label, errors(quantity, x, *course_statistics(key, n, block, rows)))
        for key, label in ALGORITHMS.items()
    ]
    notes = []
    for exercise_id in own:
        mine = own_statistics(exercise_id, n, block, rows)
        if mine.mean is None or mine.var is None:
            notes.append(f"{OWN[exercise_id]} gave nothing to draw: {mine.note}")
        else:
            curves.append(Curve(exercise_id, OWN[exercise_id], errors(quantity, x, mine.mean, mine.var)))
    return AccuracyState(
        quantity, n, block, rows, chosen, ratio, tuple(curves), bound(chosen, quantity, n, block, x), tuple(notes)
    )


def title(state: AccuracyState) -> str:
    """The message: what is left of the digits at the chosen ratio."""
    worst = max(
        (curve for curve in state.curves if curve.key in ALGORITHMS),
        key=lambda curve: is_drawn(curve.errors[state.ratio]),
    )
    at = f"mean/std = {format_ratio(RATIOS[state.ratio])}"
    error = worst.errors[state.ratio]
    if error < 1e-4:
        return f"At {at} every kernel keeps at least four digits"
    name = f"{worst.label[0].upper()}{worst.label[1:]}"
    if error >= 1 or np.isnan(error):
        return f"{name} has no digit left at {at}"
    return f"{name} is off by {format_number(error, 2)} at {at}"


def describe(state: AccuracyState) -> str:
    """The caption: settings, the error of every curve at the chosen ratio, the bound, and why a kernel is missing."""
    kind = (
        "absolute error of y, which is around 1"
        if state.quantity == "y"
        else f"relative error of the {QUANTITIES[state.quantity]}"
    )
    each = ", ".join(f"{curve.label} {format_number(curve.errors[state.ratio], 2)}" for curve in state.curves)
    limit = state.bound[state.ratio]
    if not np.isfinite(limit):
        bounded = f"For {ALGORITHMS[state.chosen]} nothing is promised here."
    else:
        bounded = f"{ALGORITHMS[state.chosen].capitalize()} cannot be off by more than {format_number(limit, 2)}."
    shown = (
        f"rows whose first element lies {(state.n - 1) ** 0.5:.0f} standard deviations out"
        if state.rows == "loud"
        else "normal rows"
    )
    words = f"N = {state.n}, BLOCK = {state.block}, fp32, {shown}. At mean/std = {format_ratio(RATIOS[state.ratio])}, {kind}, worst of {SAMPLES} rows: {each}. {bounded}"
    return " ".join([words, *state.notes])


def is_drawn(error: float) -> float:
    return CEILING if np.isnan(error) else min(max(error, FLOOR), CEILING)


def format_ratio(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.99 else f"{ratio:.1f}"
