"""Half an hour on a GPU: the learner's files of five lessons are checked, timed and trained with.
``notebooks/hosted`` has the notebook.

Without a GPU the checks run in CPU mode, the charts show stored times alone, and each part says
what is missing.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import course_lib
from course_lib import catalog
from course_lib.base import runtime
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.bench import (
    forward,
    grid,
    measurement,
    operations,
    row_statistics,
    timing,
    transformer,
)
from course_lib.bench.operations import OPERATIONS
from course_lib.bench.providers import PROVIDERS
from course_lib.catalog import Exercise
from course_lib.grading import public as grading
from course_lib.kernels.launch import choice, device
from course_lib.kernels.row_statistics import streamed_launch
from course_lib.learner.following import take_verdict
from course_lib.lessons import own_kernels, own_launch, style
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson05 import figures as lesson05
from course_lib.lessons.lesson05.accuracy.model import OWN as STATISTICS
from course_lib.lessons.lesson06.figures import H100
from course_lib.lessons.lesson08 import figures as lesson08
from course_lib.lessons.lesson13 import figures as lesson13
from course_lib.lessons.lesson13.sums import LENGTHS, read_stored_designs
from course_lib.lessons.lesson14.loss_curves.widget import LossCurves, loss_curves
from course_lib.lessons.pictures.chart.model import Series
from course_lib.lessons.pictures.kernel_roofline.model import OWN as NORMS
from course_lib.lessons.pictures.kernel_roofline.model import time_own
from course_lib.tuning.launch import MULTIPROCESSORS

LESSONS = ("05", "08", "13", "14", "15")
STEPS = 300  # of the training, as in lesson 14
_HOPPER = (9, 0)  # the compute capability of the GPU on which the stored times were measured
_ELEMENTS = 2**27  # of each matrix of which the statistics are timed: 0.5 GB in fp32
_TIMED_STATISTICS = row_statistics.COLUMNS[:3]
_NO_TIMES = N_("No GPU here: the chart has stored times alone.")

Times = Mapping[int, float]  # time over the floor, by row length


def list_exercises() -> list[Exercise]:
    """Return the exercises of LESSONS, without optional tasks, in the order of the course."""
    return [exercise for exercise in catalog.required().values() if exercise.lesson in LESSONS]


def describe_gpu() -> str:
    """Say in words what this machine's GPU has in common with that of the stored times, and what is
    different; or that there is no GPU."""
    if course_lib.MODE == "cpu":
        return _(
            "CPU mode ({why}): the course has no GPU here. Files are checked in Triton's"
            " interpreter, nothing is timed, and the\ncharts have stored times alone. To get a GPU:"
            " on Colab choose Runtime, Change runtime type; on Kaggle choose Settings,"
            " Accelerator.\nTake one of compute capability 8.0 or newer (A100, L4, H100), not a T4"
            " or a P100. Then run this notebook again from its first cell."
        ).format(why=runtime.current().why)
    at = torch.device(course_lib.DEVICE, torch.cuda.current_device())
    capability, count = torch.cuda.get_device_capability(at), device.count_multiprocessors(at)
    gbps = device.find_bandwidth(at) * count
    lines = [
        _(
            "{name}: compute capability {major}.{minor}, {count} multiprocessors, memory of"
            " {gbps:.0f} GB/s."
        ).format(
            name=torch.cuda.get_device_name(at),
            major=capability[0],
            minor=capability[1],
            count=count,
            gbps=gbps,
        ),
        _(
            "The stored times are those of an {name}: 9.0, {count} multiprocessors, {gbps:.0f}"
            " GB/s. Of another GPU, microseconds\ncannot be compared with these. Times over the"
            " floor can: each GPU has its own floor."
        ).format(name=H100.name, count=MULTIPROCESSORS, gbps=H100.bandwidth / 1e9),
    ]
    if capability < _HOPPER:
        lines.append(
            _(
                "Different on this GPU: it has no copies of whole tiles by hardware (TMA), no"
                " clusters of thread blocks, and no kernel starts before\nthe kernel before it has"
                " ended. Those came with 9.0. No exercise needs them, and `num_stages` works here,"
                " too."
            )
        )
    elif capability > _HOPPER:
        lines.append(
            _(
                "This GPU is newer than the one of the stored times. No kernel of the course uses"
                " what is new in it."
            )
        )
    tuned = choice.find_device_class(torch.empty(1, dtype=torch.float16, device=at))
    if not tuned.bandwidth and capability != _HOPPER:
        lines.append(
            _(
                "No launch of the course was tuned on it: it takes those of the {name}. Another"
                " number of warps may be faster here."
            ).format(name=tuned.name)
        )
    else:
        lines.append(
            _("The course's launches here are those of its class {name}.").format(name=tuned.name)
        )
    return "\n".join(lines)


def check_files() -> None:
    """Check the learner's file of each exercise of LESSONS, print the verdicts, and keep them as
    the panel's Check does."""
    for exercise in list_exercises():
        verdict = grading.check(exercise)
        followup = take_verdict(verdict)
        report = grading.make_report(verdict, exercise)
        print(report.headline)
        if followup.complaint:
            print(f"    {followup.complaint}")
        if verdict.status == grading.NOT_ATTEMPTED:
            print(
                _(
                    "    exercises/{file}.py is still as the course wrote it. If you have solved"
                    " it, upload yours and run this cell again."
                ).format(file=exercise.file)
            )
        elif verdict.status != grading.PASS:
            print(
                _("    {cause} The panel in lesson {lesson} says more.").format(
                    cause=report.cause, lesson=exercise.lesson
                )
            )
        elif verdict.message:
            print(f"    {verdict.message}")


def show_statistics() -> MovingPicture:
    """Show the stored times of the statistics kernels of lesson 05, and those of the learner's
    kernels on this GPU as dots."""
    kernels, notes = _gather(
        [exercise_id for exercise_id in STATISTICS if catalog.get(exercise_id).lesson in LESSONS]
    )
    dots = _time_all(kernels, _TIMED_STATISTICS, _time_statistics, "torch.var_mean")
    return lesson05.sweep_cost(
        measurement.stored(row_statistics.KIND), dots, _write_note(dots, notes)
    )


def show_forward() -> MovingPicture:
    """Show the stored times of LayerNorm forward, and those of the learner's kernel and PyTorch on
    this GPU as dots."""
    kernels, notes = _gather(_list_norms("layer_norm"))
    dots = _time_all(kernels, LENGTHS, functools.partial(_time_norm, "layer_norm"), "PyTorch")
    return lesson08.show_forward_cost(
        measurement.stored(forward.KIND), dots, _write_note(dots, notes)
    )


def show_backward() -> MovingPicture:
    """Show the stored times of LayerNorm backward, and those of the learner's kernel and PyTorch on
    this GPU as dots.

    The learner's kernel leaves partial sums. The times of the others include the kernel that adds
    these up.
    """
    kernels, notes = _gather(_list_norms("layer_norm_backward"))
    dots = _time_all(
        kernels, LENGTHS, functools.partial(_time_norm, "layer_norm_backward"), "PyTorch"
    )
    without = _("Your dots are without the second kernel, which adds up the partial sums.")
    return lesson13.show_designs(
        read_stored_designs(), dots, _write_note(dots, [without, *notes] if kernels else notes)
    )


def train_norm() -> LossCurves | None:
    """Train the model of lesson 14 with PyTorch's norm and with the learner's on this GPU, print
    times, and return the two curves.

    Without a GPU it prints where this is done instead, and returns None.
    """
    if course_lib.MODE == "cpu":
        print(
            _(
                "No GPU here: lesson 14 trains the model in the interpreter, in half a minute to"
                " two minutes."
            )
        )
        return None
    norm = own_kernels.gather_norm()
    print(norm)
    corpus = transformer.split(transformer.fables())
    runs: dict[str, list[float]] = {}
    for name, kind in {
        _("PyTorch's LayerNorm"): torch.nn.LayerNorm,
        norm.name: norm.Module,
    }.items():
        model = transformer.build(corpus.training, kind, device=course_lib.DEVICE)
        next(iter(transformer.train(model, corpus.training, 1)))  # compiles
        model = transformer.build(corpus.training, kind, device=course_lib.DEVICE)
        started = time.perf_counter()
        runs[name] = list(transformer.learn(model, corpus, STEPS))
        print(
            _(
                "{name}: {seconds:.1f} s for {steps} steps, loss on the held-out text {loss:.2f}"
            ).format(
                name=name, seconds=time.perf_counter() - started, steps=STEPS, loss=runs[name][-1]
            )
        )
    return loss_curves(runs, STEPS, baseline=corpus.training.entropy())


def _list_norms(op: str) -> list[str]:
    """Return the exercises of LESSONS whose kernel computes the operation ``op`` and can be
    timed."""
    return [
        exercise.id
        for exercise in list_exercises()
        if exercise.id in NORMS and NORMS[exercise.id].op == op
    ]


def _gather(exercise_ids: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the learner's kernels that pass their check, by exercise, and for each other one the
    reason in a sentence; nothing without a GPU."""
    kernels, notes = {}, []
    for exercise_id in exercise_ids if course_lib.MODE == "gpu" else ():
        try:
            kernels[exercise_id] = getattr(
                own_kernels.load_passing(exercise_id), own_launch.name_kernel(exercise_id)
            )
        except CourseError as reason:
            notes.append(_("No dots of yours: {reason}").format(reason=reason))
    return kernels, notes


def _write_note(dots: Sequence[Series], notes: Sequence[str]) -> str:
    """Return the words of a caption: where the dots were measured, their values, and the notes; or
    that there is no GPU."""
    if course_lib.MODE == "cpu":
        return _(_NO_TIMES)
    values = [
        _("{name}: {values}.").format(
            name=series.name,
            values=_(", ").join(
                _("{y:.2f} at {N:.0f}").format(y=y, N=N)
                for N, y in zip(series.x, series.y, strict=True)
            ),
        )
        for series in dots
    ]
    return join_sentences(
        _("Dots: measured now on {gpu}.").format(gpu=runtime.current().name), *values, *notes
    )


def _time_all(
    kernels: Mapping[str, Any],
    columns: Sequence[int],
    time_row_length: Callable[[Mapping[str, Any], int], Mapping[str, float]],
    peer: str,
) -> list[Series]:
    """Return dots of each learner's kernel and of ``peer`` on this GPU; none without a GPU.

    Args:
        time_row_length: takes the kernels and a row length; returns time over the floor by
            exercise, and that of the peer as "torch".
    """
    if course_lib.MODE == "cpu":
        return []
    times = {N: time_row_length(kernels, N) for N in columns}
    names = {
        exercise_id: (
            _("yours, {exercise}").format(exercise=exercise_id),
            _choose_colour(exercise_id),
        )
        for exercise_id in kernels
    }
    names["torch"] = (_("{peer}, this GPU").format(peer=peer), "torch")
    return [
        Series(
            name,
            [N for N in columns if key in times[N]],
            [times[N][key] for N in columns if key in times[N]],
            colour,
            line=False,
        )
        for key, (name, colour) in names.items()
    ]


def _choose_colour(exercise_id: str) -> str:
    """Return the colour of the algorithm that the exercise's kernel is named for; if it is named
    for none, that of the ladder's own bars."""
    algorithm = own_launch.name_kernel(exercise_id).removesuffix("_kernel")
    return algorithm if algorithm in style.GROUPS["algorithms"] else "welford"


def _time_statistics(kernels: Mapping[str, Any], N: int) -> dict[str, float]:
    M, launch = _ELEMENTS // N, streamed_launch(N)
    inputs = [torch.randn(M, N, device=course_lib.DEVICE) + 1 for _ in range(2)]
    floor = row_statistics.floor_us(inputs)

    def bind(exercise_id: str, kernel: Any) -> row_statistics.Call:
        def call(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            mean, var = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
            arguments_by_name = {"x": x, "mean": mean, "var": var, "BLOCK": launch.block}
            arguments, constants = own_launch.order_arguments(exercise_id, M, N, arguments_by_name)
            kernel[(M,)](*arguments, **constants, num_warps=launch.num_warps)
            return mean, var

        return call

    calls = {exercise_id: bind(exercise_id, kernel) for exercise_id, kernel in kernels.items()} | {
        "torch": row_statistics.providers(N)["torch"]
    }
    times = {}
    for key, call in calls.items():
        row_statistics.assert_right(key, call, inputs[0])
        times[key] = timing.device_us([lambda x=x, call=call: call(x) for x in inputs]) / floor
    return times


def _time_norm(name: str, kernels: Mapping[str, Any], N: int) -> dict[str, float]:
    M, op, dtype = forward.ELEMENTS // N, OPERATIONS[name], operations.DTYPES["fp16"]
    inputs = operations.make(
        M, N, dtype, course_lib.DEVICE, grid.count_inputs(M, N, dtype.itemsize), (op,)
    )
    floor = operations.floor_us(op, inputs)
    prepare = PROVIDERS["torch"].load().prepare[name]
    times = {"torch": timing.device_us([prepare(values) for values in inputs]) / floor}
    del inputs
    torch.cuda.empty_cache()  # one graph's memory pool cannot serve another graph
    for exercise_id, kernel in kernels.items():
        us = time_own(exercise_id, kernel, N)
        if us is not None:
            times[exercise_id] = us / floor
    return times
