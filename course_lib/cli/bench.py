"""Run ``course bench``: measure or recall, print a table or a summary, draw a picture."""

from __future__ import annotations

import importlib
import json
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.bench import measurement, tables
from course_lib.cli.page import require_html, write_page

if TYPE_CHECKING:
    from course_lib.tuning.shape import ShapeReport

KINDS = {
    "forward": (
        N_(
            "forward passes of LayerNorm and RMSNorm, with and without the residual added"
            " first, against the floor"
        )
    ),
    "backward": N_("their backward passes alone"),
    "long_rows": N_("rows of 65536 columns and more, forward and backward"),
    "statistics": N_("mean and variance alone, by lesson 05's algorithms"),
    "host": N_("what an eager call costs the host"),
    "training": N_("a transformer's training steps"),
}
_MODULES = {"statistics": "row_statistics"}  # the others are called as their kind is
_SELECTS = {  # which of the options a kind has
    "forward": ("columns", "dtype", "providers"),
    "backward": ("columns", "dtype", "providers"),
    "long_rows": ("columns", "dtype", "providers"),
    "host": ("dtype", "providers"),
}


def run(
    kind: str,
    *,
    stored: bool = False,
    plot: Path | None = None,
    columns: str | None = None,
    rows: int | None = None,
    dtype: str | None = None,
    norm: str | None = None,
    providers: str | None = None,
    as_json: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Yield the texts to print, as they become known: of one kind its table, of "all" a summary of
    each, of one shape its report.

    Args:
        kind: one of KINDS, or "all".
        stored: recall the newest stored measurement and measure nothing.
        plot: an HTML file to draw into; for "all" the kind is added to its name.
        columns: row lengths, with commas between; None is the whole grid.
        rows: the M of one shape, whose N is ``columns``; None measures kinds.
        dtype: "fp16", "bf16" or "fp32"; None is fp16.
        norm: "layer_norm" or "rms_norm", for one shape; None is layer_norm.
        providers: names with commas between; None is all of them.
        as_json: everything that was measured, one JSON object by kind, and nothing else.
        width: columns to print in; None takes the terminal's, and 80 elsewhere.

    Raises: CourseError if there is no such kind, dtype, provider or row length, no GPU to measure
    on, or nothing stored.
    """
    if kind not in (*KINDS, "all"):
        raise CourseError(
            _("there is no measurement {kind!r}. There are: {kinds}, all.").format(
                kind=kind, kinds=", ".join(KINDS)
            )
        )
    selection = _read_selection(columns, dtype, providers)
    _refuse_options(kind, selection, plot=plot, as_json=as_json)
    if rows is not None or norm is not None:
        yield from _report_shape(
            kind, selection, rows, norm, stored=stored, plot=plot, as_json=as_json, width=width
        )
        return
    width = width or shutil.get_terminal_size((tables.WIDTH, 24)).columns
    modules = _import_modules(kind)
    _refuse_unknown_providers(selection.get("providers", ()), modules)
    # imports PyTorch, for which the mode has to be chosen before
    from course_lib.bench.summary import summary

    alone, everything = kind != "all", {}
    for name, module in modules.items():
        try:
            measured = _measure(name, module, selection, stored=stored, alone=alone)
        except measurement.Unavailable as error:
            if not as_json:
                yield _paragraph(f"{name}: {error}", width) + "\n"
            continue
        if measured is None:
            continue
        saved = [] if stored else [_("saved to {file}").format(file=paths.shown(measured.save()))]
        if as_json:
            everything[name] = asdict(measured)
        else:
            yield from saved
            yield module.table(measured, width) if alone else f"{summary(name, measured, width)}\n"
            yield from _draw(name, measured, plot, alone=alone)
    if as_json:
        yield json.dumps(everything, indent=1)
    elif not alone:
        text = _(
            "The floor is the fastest elementwise pass over as many bytes. `course bench KIND"
            " --stored` shows all of a kind: {kinds}."
        ).format(kinds=", ".join(KINDS))
        yield _paragraph(text, width)


def _read_selection(
    columns: str | None, dtype: str | None, providers: str | None
) -> dict[str, Any]:
    """Return the values of the options that were given."""
    options = {
        "columns": columns and _split_numbers(columns),
        "dtype": dtype,
        "providers": providers and _split_names(providers),
    }
    return {name: value for name, value in options.items() if value}


def _refuse_options(
    kind: str, selection: dict[str, Any], *, plot: Path | None, as_json: bool
) -> None:
    """Refuse an option that the kind does not have, and options that exclude each other."""
    for name in selection if kind != "all" else ():
        if name not in _SELECTS.get(kind, ()):
            kinds = ", ".join(k for k in _SELECTS if name in _SELECTS[k])
            raise CourseError(
                _("`course bench {kind}` has no --{name}. These have: {kinds}.").format(
                    kind=kind, name=name, kinds=kinds
                )
            )
    if plot:
        require_html(plot, "--plot")
    if as_json and plot:
        raise CourseError(_("--json prints what was measured and nothing else; leave --plot out."))


def _report_shape(
    kind: str,
    selection: dict[str, Any],
    M: int | None,
    norm: str | None,
    *,
    stored: bool,
    plot: Path | None,
    as_json: bool,
    width: int | None,
) -> Iterator[str]:
    """Yield the report of one shape, and write its page if a file is named."""
    if kind != "all" or "providers" in selection:
        raise CourseError(
            _(
                "--rows and --norm ask for the report of one shape, which has no KIND and no "
                "--providers. Leave those out."
            )
        )
    columns = selection.get("columns", ())
    if M is None or len(columns) != 1:
        raise CourseError(
            _(
                "the report of a shape takes one row length and the number of rows, such as "
                "--columns 4096 --rows 8192."
            )
        )
    assert course_lib.MODE  # chooses GPU or interpreter now, before PyTorch is imported
    from course_lib.tuning import shape

    report = shape.make_report(
        columns[0], M, selection.get("dtype", "fp16"), norm or "layer_norm", timed=not stored
    )
    if as_json:
        yield json.dumps({"shape": asdict(report)}, indent=1)
        return
    width = width or shutil.get_terminal_size((tables.WIDTH, 24)).columns
    yield "\n".join(_write_lines(report, width))
    if plot:
        from course_lib.lessons.figures.shape import times_by_length

        write_page(plot, "shape.html", report=report, picture=times_by_length(report))
        yield _("drawn into {plot}").format(plot=plot)


def _write_lines(report: ShapeReport, width: int) -> Iterator[str]:
    """Yield the lines of a report. At 80 columns there are ten or fewer, unless a time is missing,
    which takes a line of its own."""
    yield from tables.paragraph(report.write_title(), width)
    for name, norm_pass in zip(("forward", "backward"), report.passes, strict=True):
        first_text, *more_texts = norm_pass.write()
        yield from tables.paragraph(f"{name}: {first_text}", width)
        for text in more_texts:
            yield from textwrap.wrap(
                text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
    yield from tables.notes(report.measured, width) if report.measured else ()


def _import_modules(kind: str) -> dict[str, ModuleType]:
    """Import the module of each kind that is asked for."""
    # chooses GPU or interpreter now: these modules import PyTorch, and that can import Triton
    assert course_lib.MODE
    kinds = tuple(KINDS) if kind == "all" else (kind,)
    return {
        name: importlib.import_module(f"course_lib.bench.{_MODULES.get(name, name)}")
        for name in kinds
    }


def _measure(
    name: str, module: ModuleType, options: dict[str, Any], *, stored: bool, alone: bool
) -> measurement.Measurement | None:
    """Measure a kind, or recall its newest measurement; return None if the kind has none of the
    providers that were asked for."""
    selection = {
        option: value for option, value in options.items() if option in _SELECTS.get(name, ())
    }
    if "providers" in selection and not alone:
        selection["providers"] = tuple(p for p in selection["providers"] if p in module.PROVIDERS)
        if not selection["providers"]:
            return None
    return _recall(name, alone=alone, **selection) if stored else module.measure(**selection)


def _paragraph(text: str, width: int) -> str:
    return "\n".join(tables.paragraph(text, width))


def _refuse_unknown_providers(names: tuple[str, ...], modules: dict[str, ModuleType]) -> None:
    known_names = [
        name
        for kind, module in modules.items()
        if "providers" in _SELECTS.get(kind, ())
        for name in module.PROVIDERS
    ]
    for name in names:
        if name not in known_names:
            raise CourseError(
                _("there is no provider {name!r} here. There are: {providers}.").format(
                    name=name, providers=", ".join(dict.fromkeys(known_names))
                )
            )


def _recall(
    kind: str,
    *,
    alone: bool,
    columns: tuple[int, ...] | None = None,
    dtype: str = "fp16",
    providers: tuple[str, ...] | None = None,
) -> measurement.Measurement:
    """Return the newest stored measurement.

    Args:
        alone: only this kind was asked for, so that a row length it lacks is a mistake.

    Raises: CourseError if it is not there or cannot be read, or lacks one of the columns;
    Unavailable if another kind may be there.
    """
    from course_lib.bench.grid import of_dtype

    name = of_dtype(kind, dtype)
    if not alone and not measurement.is_stored(name):
        suffix = "" if name == kind else f" in {dtype}"
        raise measurement.Unavailable(
            _("not measured yet{suffix}. `course bench {kind}` on a GPU takes it.").format(
                suffix=suffix, kind=kind
            )
        )
    measured = measurement.stored(name)
    lengths = sorted({row["N"] for row in measured.rows if "N" in row})
    for N in columns or ():
        if alone and N not in lengths:
            raise CourseError(
                _(
                    "the stored measurement {name!r} has no row length {N}. It has: {lengths}."
                ).format(name=name, N=N, lengths=", ".join(map(str, lengths)))
            )
    return measured.only(columns, providers)


def _split_numbers(text: str) -> tuple[int, ...]:
    try:
        columns = tuple(int(part) for part in text.split(","))
    except ValueError:
        columns = ()
    if not columns or min(columns) < 1:
        raise CourseError(
            _("--columns {text} is not a list of row lengths; 256,1024,4095 is one.").format(
                text=text
            )
        )
    return columns


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _draw(
    kind: str, measured: measurement.Measurement, plot: Path | None, *, alone: bool
) -> Iterator[str]:
    """Draw the measurement, if a picture is asked for; say where it is."""
    if plot is None:
        return
    from course_lib.lessons.figures import bench as figures

    if not measured.rows:
        raise CourseError(
            _(
                "there is nothing to draw: this selection of the measurement {kind!r} has no times."
            ).format(kind=measured.kind)
        )
    drawing = {"host": figures.host, "training": figures.training}.get(kind, figures.over_floor)
    target = plot if alone else plot.with_stem(f"{plot.stem}-{kind}")
    write_atomic(target, drawing(measured).make_page())
    yield _("drawn into {target}").format(target=target)
