"""The figures of lesson 14: the parts of a norm, the bugs that each test sees, the training speed
with each norm, and where a step's time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.bench import measurement
from course_lib.bench.measurement import Measurement
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.own_kernels import Part
from course_lib.lessons.pictures.chart.model import Bar, Bars, Box, Boxes, Cells, View, chart

PROVIDERS = {
    "ours": N_("the course's kernels"),
    "torch": N_("PyTorch's norm"),
    "typed": N_("typed op by op"),
}
_NAMES = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
_LOOKS = {"ours": "ours", "torch": "torch", "typed": "tutorial"}
_SHORT = {"torch": "PyTorch", "ours": N_("the course")}
_MODES = {"eager": N_("eager"), "graph": N_("in one CUDA graph"), "compiled": N_("compiled")}
_OTHER_PARTS = ((N_("other kernels"), "masked"), (N_("the GPU waits"), "paper"))
_LEAST_GAP = 0.005  # ms; a shorter gap between two kernels is too narrow to be seen


def show_parts(parts: Sequence[Part]) -> MovingPicture:
    """Show the data flow through the four parts of a norm, forward and backward, and mark the parts
    that are the learner's."""
    is_learners = {part.exercise: part.own for part in parts}
    count = sum(is_learners.values())

    def box(x: float, y: float, width: float, height: float, exercise: str, role: str) -> Box:
        owner = (
            _("yours, {exercise}").format(exercise=exercise)
            if is_learners[exercise]
            else _("the course's")
        )
        return Box(
            x,
            y,
            width,
            height,
            f"{_(role)}\n{owner}",
            "done" if is_learners[exercise] else "waiting",
            at_top=exercise == "14a",
        )

    boxes = [
        # around the other parts, because all data goes in and out through the wiring
        box(1.5, 0, 4.6, 5.6, "14a", "wiring"),
        box(2.95, 1.4, 1.7, 1.5, "08a", "forward"),
        box(1.85, 3.6, 1.7, 1.5, "11a", "dx"),
        box(4.05, 3.6, 1.7, 1.5, "13b", "dw and db"),
        *(
            Box(x, y, 1.3, 1, words, "")
            for x, y, words in (
                (0, 1.6, "x, w, b"),
                (6.3, 1.6, "y"),
                (6.3, 3.8, "dy"),
                (0, 3.8, "dx, dw, db"),
            )
        ),
    ]
    yours_text, courses = _("{role}: yours, {exercise}"), _("{role}: the course’s, because {why}")
    owners_text = _("; ").join(
        (yours_text if part.own else courses)
        .format(role=_(part.role), exercise=part.exercise, why=part.why)
        .rstrip(".。")
        for part in parts
    )
    title = (
        _("A norm of four parts: {count} of them yours").format(count=count)
        if count
        else _("A norm of four parts")
    )
    return chart(
        View(title, [Boxes(boxes, [(4, 0), (0, 5), (6, 0), (0, 7)], 7.6)]),
        alt=_("The parts of the norm. {whose}.").format(whose=owners_text),
    )


def show_seen(table: Mapping[str, Mapping[str, bool]]) -> MovingPicture:
    """Show a grid with a row per bug and a column per test; a cell says whether the test sees the
    bug.

    Args:
        table: for each bug and each test, both in words, whether the test fails on the bug.
    """
    tests = list(next(iter(table.values())))
    complete = [test for test in tests if all(row[test] for row in table.values())]
    words = [
        [_("sees it") if sees else _("passes") for sees in row.values()] for row in table.values()
    ]
    looks = [["done" if sees else "waiting" for sees in row.values()] for row in table.values()]
    tests_by_bug = {
        bug: list_words(_(test) for test, sees in row.items() if sees) for bug, row in table.items()
    }
    bugs_text = join_sentences(
        *(
            _("{bug}: seen by {tests}.").format(bug=_(bug), tests=by or _("none"))
            for bug, by in tests_by_bug.items()
        )
    )
    return chart(
        View(
            (
                _("{test} sees every bug").format(test=_(complete[0]))
                if complete
                else _("No test sees every bug")
            ),
            [
                Cells(
                    [_(bug) for bug in table],
                    [_(test) for test in tests],
                    words,
                    looks,
                    _("rows: bugs; columns: tests"),
                )
            ],
        ),
        alt=_("A grid of {count} bugs and the tests that see them. {told}").format(
            count=len(table), told=bugs_text
        ),
    )


def show_speed(measured: Measurement) -> MovingPicture:
    """Show tokens per second: a bar for each norm and provider, eager and compiled.

    Args:
        measured: has rows with ``norm``, ``provider``, ``compiled`` and ``tokens_per_s``.
    """
    groups: dict[str, list[Bar]] = {}
    for row in sorted(
        measured.rows,
        key=lambda row: (row["compiled"], row["norm"], list(PROVIDERS).index(row["provider"])),
    ):
        group = f"{_NAMES[row['norm']]}{_(', ')}{_('compiled') if row['compiled'] else _('eager')}"
        speed = row["tokens_per_s"] / 1e3
        groups.setdefault(group, []).append(
            Bar(_(PROVIDERS[row["provider"]]), [(speed, _LOOKS[row["provider"]])], f"{speed:,.0f}")
        )
    speeds_text = _("; ").join(
        _("{name}: {values}").format(
            name=group, values=_(", ").join(f"{bar.name} {bar.words}" for bar in bars)
        )
        for group, bars in groups.items()
    )
    speeds = {
        (row["norm"], row["compiled"], row["provider"]): row["tokens_per_s"]
        for row in measured.rows
    }
    shares = [
        speed / speeds[(*key, "torch")]
        for (*key, provider), speed in speeds.items()
        if provider == "ours"
    ]
    size = measured.rows[0]
    words = _("whole training, {layers} layers, norms over {M} x {N}, {dtype}")
    words = words.format(layers=size["layers"], M=size["M"], N=size["N"], dtype=size["dtype"])
    return chart(
        View(
            _(
                "With the course's kernels the training runs at {least:.0%} to {most:.0%} of"
                " PyTorch's speed"
            ).format(least=min(shares), most=max(shares)),
            [Bars(list(groups.items()), _("thousand tokens per second"))],
            _("{words}. {source}.").format(
                words=f"{words[0].upper()}{words[1:]}", source=measured.label()
            ),
        ),
        alt=_("Bars. Thousand tokens per second of the {words}: {told}.").format(
            words=words, told=speeds_text
        ),
    )


def show_steps(measured: Measurement) -> MovingPicture:
    """Show the milliseconds of a step of the small model with LayerNorm: a row for each mode, and a
    bar each for the course's norm and PyTorch's.

    Args:
        measured: has the rows of ``authoring/bench/profile.py``.
    """
    ms = {
        (row["mode"], row["provider"]): row["ms"]
        for row in measured.rows
        if (row["size"], row["norm"]) == ("small", "layer_norm")
    }
    more = {mode: ms[mode, "ours"] / ms[mode, "torch"] - 1 for mode in _MODES}
    differences = {
        mode: (_("{share:.0%} longer") if share > 0 else _("{share:.0%} shorter")).format(
            share=abs(share)
        )
        for mode, share in more.items()
    }
    groups = [
        (
            _(name),
            [
                Bar(_(words), [(ms[mode, provider], _LOOKS[provider])], f"{ms[mode, provider]:.1f}")
                for provider, words in _SHORT.items()
            ],
        )
        for mode, name in _MODES.items()
    ]
    return chart(
        View(
            _(
                "With the course's norm a step is {eager} eager, {graph} in one CUDA graph, and"
                " {compiled} compiled"
            ).format(**differences),
            [Bars(groups, _("ms per training step"))],
            _("LayerNorm over {M} x {N}. {source}.").format(
                M=measured.rows[0]["M"], N=measured.rows[0]["N"], source=measured.label()
            ),
        ),
        alt=_(
            "Bars. Milliseconds per step with the course's norm and with PyTorch's: {told}."
        ).format(
            told=_("; ").join(
                f"{name} {', '.join(bar.words or '' for bar in bars)}" for name, bars in groups
            )
        ),
    )


def show_profile(measured: Measurement) -> MovingPicture:
    """Show one training step of the small model with LayerNorm: a lane per mode and provider, with
    its norms, its other kernels and the gaps.

    Args:
        measured: has the rows of ``authoring/bench/profile.py``.
    """
    groups: dict[str, list[Bar]] = {mode: [] for mode in _MODES}
    idle: dict[tuple[str, str], str] = {}
    step_texts = []
    for row in measured.rows:
        if (row["size"], row["norm"]) != ("small", "layer_norm"):
            continue
        mode, provider = row["mode"], row["provider"]
        idle[mode, provider] = f"{row['idle_ms']:.1f}"
        words = _("{idle} of {whole:.1f}").format(idle=idle[mode, provider], whole=row["span_ms"])
        groups[mode].append(
            Bar(_(_SHORT[provider]), _list_stretches(row["pieces"], _LOOKS[provider]), words)
        )
        step_texts.append(
            _("{mode}, {provider}: {words} ms, norms {norms:.1f} ms").format(
                mode=_(_MODES[mode]),
                provider=_(_SHORT[provider]),
                words=words,
                norms=row["kinds"]["norm"],
            )
        )
    return chart(
        View(
            _(
                "In one CUDA graph the GPU waits {graph} ms per step; in eager mode it waits"
                " {torch} ms with PyTorch's norm and {ours} ms with the course's"
            ).format(
                graph=idle["graph", "ours"],
                torch=idle["eager", "torch"],
                ours=idle["eager", "ours"],
            ),
            [
                Bars(
                    [(_(_MODES[mode]), bars) for mode, bars in groups.items()],
                    _(
                        "time from left to right; beside each bar: ms that the GPU waits, of the ms"
                        " of one step with LayerNorm"
                    ),
                    parts=[
                        *(
                            (_("norm of {name}").format(name=_(name)), _LOOKS[provider])
                            for provider, name in _SHORT.items()
                        ),
                        *((_(name), colour) for name, colour in _OTHER_PARTS),
                    ],
                    edges=False,
                )
            ],
            _("Under the profiler, which slows the host. {source}.").format(
                source=measured.label()
            ),
        ),
        alt=_(
            "A timeline of one step for each norm and mode. Of one step the GPU waits: {told}."
        ).format(told=_("; ").join(step_texts)),
    )


def _list_stretches(
    pieces: Sequence[tuple[float, float, str]], norm: str
) -> list[tuple[float, str]]:
    """Return length (ms) and colour of each stretch of a step: norms in the colour ``norm``, other
    kernels, and gaps of _LEAST_GAP or more."""
    stretches: list[tuple[float, str]] = []
    reached = 0.0
    for start, end, kind in pieces:
        colour = norm if kind == "norm" else _OTHER_PARTS[0][1]
        if start - reached >= _LEAST_GAP:
            stretches.append((round(start - reached, 3), _OTHER_PARTS[1][1]))
            reached = start
        if end > reached:
            before = stretches.pop()[0] if stretches and stretches[-1][1] == colour else 0.0
            stretches.append((round(before + end - reached, 3), colour))
            reached = end
    return stretches


def find_host_costs() -> dict[str, int]:
    """Return the host's microseconds for a forward and backward call of LayerNorm in fp16, by
    provider ("ours", "torch"), as stored.

    Raises: CourseError if nothing is stored.
    """
    selection = {"op": "layer_norm", "passes": "forward and backward", "dtype": "fp16"}
    rows = [row for row in measurement.stored("host").rows if selection.items() <= row.items()]
    return {
        row["provider"]: round(row["us"]) for row in rows if row["provider"] in ("ours", "torch")
    }
