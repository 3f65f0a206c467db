"""Lesson 05: how far each statistics kernel is from the truth, against mean/std, on the course's kernels and on the reader's own."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from course_lib import catalog
from course_lib.base import paths
from course_lib.base import runtime as course_runtime
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.grading.cases.buffers import Tensor, guard_for
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Plan
from course_lib.grading.sandbox import runner
from course_lib.grading.submission import extract_kernels
from course_lib.grading.submission.attempt import extract, is_attempted
from course_lib.lessons import style
from course_lib.lessons.live import LiveFigure, Picture
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
class State:
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


# ---- model


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
    path = texts.file_of(exercise)
    try:
        text = extract_kernels.read_text(path)
        if not is_attempted(exercise, text, path.name):
            return Own(note=f"{paths.shown(path)} is still as the course wrote it.")
        kernels = extract(exercise, text, path.name)
    except extract_kernels.Unreadable as unreadable:
        return Own(note=str(unreadable))
    key = (exercise_id, n, block, rows, hashlib.sha256(text.encode()).hexdigest())
    if key not in _own:
        _own[key] = _run(kernels, exercise.entry_points[0], n, block, rows, path.name)
    return _own[key]


def _run(kernels: extract_kernels.Kernels, entry_point: str, n: int, block: int, rows: str, file: str) -> Own:
    x = data(n, rows)
    M = len(x)
    case = Case("accuracy", M, n, block, "mean/std from 1 to 10^5")
    tensors = (
        Tensor("x", "fp32", (M, n), (n, 1), x, guard=guard_for(n + block)),
        *(Tensor(name, "fp32", (M,), (1,), guard=guard_for(block)) for name in ("mean", "var")),
    )
    arguments = (("tensor", "x"), ("tensor", "mean"), ("tensor", "var"), ("int", n), ("int", n))
    plan = Plan(case, entry_point, (M,), tensors, arguments, {"BLOCK": block}, {})
    try:
        mode = course_runtime.current().mode
        limits = runner.ResourceLimits.for_mode(mode)
        run = runner.run(kernels, [plan], mode, replace(limits, case=max(limits.case, _OWN_SECONDS)))
    except OSError as refused:
        return Own(note=f"{file} could not be run: {refused}.")
    if 0 not in run.data:
        return Own(note=_why_not(run, file))
    results, start = {}, 0
    for tensor in tensors:
        piece = run.data[0][start : start + tensor.nbytes]
        start += tensor.nbytes
        if tensor.is_output:
            if tensor.unwritten(piece).any():
                return Own(note=f"{file} did not store {tensor.name} for every row.")
            results[tensor.name] = tensor.read(piece).copy()
    return Own(results["mean"], results["var"])


def _why_not(run: runner.Run, file: str) -> str:
    raised = run.import_error or run.errors.get(0)
    if raised is not None:
        where = f"{file}, line {raised['line']}" if raised["line"] else file
        return f"{where}: {raised['type']}: {' '.join(raised['text'].split())[:300]}."
    how = {"timed out": "was stopped: it took too long", "not started": "could not be started"}.get(run.ended, "ended its process")
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
) -> State:
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
    curves = [Curve(key, label, errors(quantity, x, *course_statistics(key, n, block, rows))) for key, label in ALGORITHMS.items()]
    notes = []
    for exercise_id in own:
        mine = own_statistics(exercise_id, n, block, rows)
        if mine.note:
            notes.append(f"{OWN[exercise_id]} gave nothing to draw: {mine.note}")
        else:
            curves.append(Curve(exercise_id, OWN[exercise_id], errors(quantity, x, mine.mean, mine.var)))
    return State(quantity, n, block, rows, chosen, ratio, tuple(curves), bound(chosen, quantity, n, block, x), tuple(notes))


# ---- figure


def title(state: State) -> str:
    """The message: what is left of the digits at the chosen ratio."""
    worst = max((curve for curve in state.curves if curve.key in ALGORITHMS), key=lambda curve: _drawn(curve.errors[state.ratio]))
    at = f"mean/std = {_power(RATIOS[state.ratio])}"
    error = worst.errors[state.ratio]
    if error < 1e-4:
        return f"At {at} every kernel keeps at least four digits"
    name = f"{worst.label[0].upper()}{worst.label[1:]}"
    if error >= 1 or np.isnan(error):
        return f"{name} has no digit left at {at}"
    return f"{name} is off by {_number(error)} at {at}"


def describe(state: State) -> str:
    """The caption: settings, the error of every curve at the chosen ratio, the bound, and why a kernel is missing."""
    kind = "absolute error of y, which is around 1" if state.quantity == "y" else f"relative error of the {QUANTITIES[state.quantity]}"
    each = ", ".join(f"{curve.label} {_number(curve.errors[state.ratio])}" for curve in state.curves)
    limit = state.bound[state.ratio]
    if not np.isfinite(limit):
        bounded = f"For {ALGORITHMS[state.chosen]} nothing is promised here."
    else:
        bounded = f"{ALGORITHMS[state.chosen].capitalize()} cannot be off by more than {_number(limit)}."
    shown = f"rows whose first element lies {(state.n - 1) ** 0.5:.0f} standard deviations out" if state.rows == "loud" else "normal rows"
    words = f"N = {state.n}, BLOCK = {state.block}, fp32, {shown}. At mean/std = {_power(RATIOS[state.ratio])}, {kind}, worst of {SAMPLES} rows: {each}. {bounded}"
    return " ".join([words, *state.notes])


def draw(state: State) -> Picture:
    """Error against mean/std on logarithmic axes, one line a kernel, the chosen algorithm's bound dotted, the chosen ratio marked."""
    figure = Figure(figsize=(style.WIDTH, 4.6))
    axes = figure.add_subplot()
    for curve in state.curves:
        looks = style.line(curve.key) if curve.key in ALGORITHMS else _OWN_LOOKS[curve.key]
        axes.plot(RATIOS, [_drawn(error) for error in curve.errors], label=curve.label, **looks)
        broken = [(ratio, CEILING) for ratio, error in zip(RATIOS, curve.errors, strict=True) if np.isnan(error)]
        if broken:
            axes.plot(
                *zip(*broken, strict=True), linestyle="", marker="x", markeredgecolor=looks["color"], markersize=11, markeredgewidth=2.5
            )
    limits = [min(max(limit, FLOOR), CEILING) for limit in state.bound]
    axes.plot(RATIOS, limits, color=style.COLOURS[state.chosen], linestyle=(0, (1, 2)), linewidth=1.4, marker="")
    axes.fill_between(RATIOS, limits, 10 * CEILING, color=style.COLOURS[state.chosen], alpha=0.08, linewidth=0)
    axes.annotate(f"bound of {ALGORITHMS[state.chosen]}", (RATIOS[4], limits[4]), (-6, 7), textcoords="offset points", ha="right")
    axes.axvline(RATIOS[state.ratio], color=style.QUIET, linewidth=1.0, marker="")
    axes.axhline(1.0, color=style.QUIET, linewidth=0.8, linestyle="--", marker="")
    axes.annotate("no digit is right", (RATIOS[0], 1.0), (0, 4), textcoords="offset points", color=style.QUIET)
    if any(np.isnan(error) for curve in state.curves for error in curve.errors):
        axes.annotate("x: NaN", (RATIOS[0], CEILING), (0, -12), textcoords="offset points")
    what = "largest error of y" if state.quantity == "y" else f"relative error of the {QUANTITIES[state.quantity]}"
    axes.set(
        xscale="log", yscale="log", xlabel="mean/std of the row", ylabel=what, ylim=(FLOOR / 2, 3 * CEILING), xlim=(0.8, 1.3 * RATIOS[-1])
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    axes.set_title(title(state))
    caption = describe(state)
    alt = f"{title(state)}. Error against mean/std of the row, both axes logarithmic, one line a kernel, with a bound. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


_OWN_LOOKS = {
    "05a": {"color": style.INK, "linestyle": "-", "marker": "*", "markersize": 11, "linewidth": 1.0},
    "05b": {"color": style.INK, "linestyle": "--", "marker": "P", "markersize": 8, "linewidth": 1.0},
}


def _drawn(error: float) -> float:
    return CEILING if np.isnan(error) else min(max(error, FLOOR), CEILING)


def _number(error: float) -> str:
    if np.isnan(error):
        return "NaN"
    return "0" if error == 0 else f"{error:.1e}"


def _power(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.99 else f"{ratio:.1f}"


# ---- widget


def accuracy(quantity: str = "var", n: int = 512, block: int = 256) -> LiveFigure:
    """Error against mean/std for the four streamed kernels, with the bound of one of them, and the reader's kernels if asked for.

    Args:
        quantity: "var", "rstd" or "y" (the LayerNorm output).
        n: columns, 64, 512 or 4096.
        block: columns a step, 256 or 1024.

    Raises: CourseError if an argument is outside those.
    """
    model(quantity, n, block)
    controls = {
        "quantity": _choice("error of", {label: key for key, label in QUANTITIES.items()}, quantity, 240),
        "n": _choice("columns N", {str(n): n for n in COLUMNS}, n, 160),
        "block": _choice("BLOCK", {str(block): block for block in BLOCKS}, block, 140),
        "rows": _choice("rows", {label: key for key, label in ROWS.items()}, "ordinary", 220),
        "chosen": _choice("bound of", {label: key for key, label in ALGORITHMS.items()}, "one_pass", 210),
        "ratio": ipywidgets.SelectionSlider(
            options=[(_power(ratio), index) for index, ratio in enumerate(RATIOS)], value=6, description="mean/std", layout=_wide(330)
        ),
        "own_05a": ipywidgets.Checkbox(False, description=OWN["05a"], indent=False, layout=_wide(110)),
        "own_05b": ipywidgets.Checkbox(False, description=OWN["05b"], indent=False, layout=_wide(110)),
    }  # fmt: skip
    return LiveFigure(_draw_settings, controls)


def _draw_settings(own_05a: bool, own_05b: bool, **settings: object) -> Picture:
    own = [exercise_id for exercise_id, wanted in (("05a", own_05a), ("05b", own_05b)) if wanted]
    return draw(model(own=own, **settings))


def _choice(description: str, options: Mapping[str, object], value: object, pixels: int) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(options=list(options.items()), value=value, description=description, layout=_wide(pixels))


def _wide(pixels: int) -> ipywidgets.Layout:
    return ipywidgets.Layout(width=f"{pixels}px")
