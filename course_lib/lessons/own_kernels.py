"""Lesson 14: a trainable LayerNorm, made of the learner's 08a, 11a, 13b and 14a. The course's code
replaces each that does not pass.

A check runs a learner's code in a separate process with limits. Training calls the code thousands
of times, so it has to run in the notebook's process. There it may do all that a notebook cell may
do; only a text that has passed its check is run.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

import course_lib
from course_lib import catalog
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import texts
from course_lib.grading import public as grading
from course_lib.kernels.launch import device, tables
from course_lib.kernels.launch.operands import row_stride, strides
from course_lib.kernels.layer_norm import layer_norm_resident_kernel
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel, norm_dx_kernel
from course_lib.lessons.own_launch import name_kernel, order_arguments
from course_lib.norms import launchers

ROLES = {"08a": N_("forward"), "11a": "dx", "13b": N_("dw and db"), "14a": N_("wiring")}
# elements of a tile in CPU mode, large because the interpreter's time depends on operations, not on
# elements
_TILE = 1 << 16
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Part:
    """One part of a norm or a loss. ``own`` is true if the code is the learner's; else ``why``
    gives the reason, and the part is the course's, or PyTorch's if ``is_pytorchs``."""

    exercise: str
    role: str
    own: bool
    why: str = ""
    is_pytorchs: bool = False

    def __str__(self) -> str:
        if self.own:
            words = _("{role:10} yours, {exercise}")
        elif self.is_pytorchs:
            words = _("{role:10} PyTorch’s: {why}")
        else:
            words = _("{role:10} the course’s: {why}")
        return words.format(role=_(self.role), exercise=self.exercise, why=self.why)


class OwnNorm:
    """LayerNorm made of four parts. ``apply(x, w, b, eps)`` is the autograd function, ``Module`` a
    norm for a model."""

    def __init__(self, sources: Mapping[str, str], why: Mapping[str, str]) -> None:
        """Build the norm.

        Args:
            sources: the code of the learner's parts. If it raises when it is run here, the course's
                part takes its place.
            why: for each other part the reason why it is the course's.
        """
        # the file of 14a imports the launchers
        with _replace_launchers(self.launch_forward, self.launch_backward):
            loaded, self.parts = load_parts(ROLES, sources, why)
        self.launches = dict.fromkeys(ROLES, 0)  # number of runs of each part
        self._kernels = {
            key: (
                (getattr(loaded[key], name_kernel(key)), True) if key in loaded else (kernel, False)
            )
            for key, kernel in _COURSE.items()
        }
        self._wiring = loaded.get("14a", _Wiring)
        halves = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        self.apply: Callable[..., Tensor] = type(
            "OwnNorm", (torch.autograd.Function,), halves
        ).apply
        apply = self.apply

        class Module(nn.LayerNorm):
            """A :class:`torch.nn.LayerNorm` whose forward calls this norm."""

            def forward(self, input: Tensor) -> Tensor:
                return apply(input, self.weight, self.bias, self.eps)

        self.Module = Module

    @property
    def name(self) -> str:
        """Return a label for a curve: "your LayerNorm" if all four parts are the learner's, else a
        label with their number."""
        own_count = sum(part.own for part in self.parts)
        words = {0: _("the course's LayerNorm"), len(ROLES): _("your LayerNorm")}.get(
            own_count, _("LayerNorm, {own} of {all} parts yours")
        )
        return words.format(own=own_count, all=len(ROLES))

    def __repr__(self) -> str:
        return "\n".join(map(str, self.parts))

    def _forward(self, ctx: Any, *arguments: Any) -> Tensor:
        with self._launching():
            return self._wiring.forward(ctx, *arguments)

    def _backward(self, ctx: Any, dy: Tensor) -> Any:
        with self._launching():
            return self._wiring.backward(ctx, dy)

    @contextlib.contextmanager
    def _launching(self) -> Iterator[None]:
        """Replace the launchers that exercise 14a imports by this norm's, inside the block."""
        self.launches["14a"] += 1
        with _replace_launchers(self.launch_forward, self.launch_backward):
            yield

    def launch_forward(
        self, x: Tensor, w: Tensor | None, b: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Do the work of :func:`course_lib.norms.launchers.launch_forward`, for a matrix whose rows
        are packed.

        Raises: ValueError if x is not such a matrix.
        """
        x = _check_matrix(x.detach(), "x")
        M, N = x.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        mean, rstd = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
        w, b = _fill(w, 1.0, x), _fill(b, 0.0, x)
        kernel, is_learners = self._count("08a")
        rows, block, warps = _choose_tile(tables.resident(N), M)
        grid, shape = (_divide_up(M, rows),), {"ROWS": rows, "BLOCK": block, "num_warps": warps}
        if M and is_learners:
            arguments = {
                "x": x,
                "y": y,
                "w": w,
                "b": b,
                "mean": mean,
                "rstd": rstd,
                "stride_x": row_stride(x),
                "eps": eps,
            }
            _launch_own("08a", kernel, grid, M, N, arguments | shape)
        elif M:
            kernel[grid](
                x,
                y,
                w,
                b,
                mean,
                rstd,
                row_stride(x),
                1,
                N,
                1,
                M,
                N,
                eps,
                HAS_W=True,
                HAS_B=True,
                **shape,
            )
        return y, mean, rstd

    def launch_backward(
        self, dy: Tensor, x: Tensor, w: Tensor | None, mean: Tensor, rstd: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Do the work of :func:`course_lib.norms.launchers.launch_backward`, for an x whose rows
        are packed; dy may have any strides.

        dx comes from 11a. The dx that 13b computes as well goes into a spare tensor and is not
        used.

        Raises: ValueError if dy is not a matrix, or x not one with packed rows.
        """
        dy, x, w = (
            _check_matrix(dy, "dy", any_stride=True),
            _check_matrix(x.detach(), "x"),
            _fill(w, 1.0, x),
        )
        M, N = x.shape
        dx, spare = (torch.empty((M, N), dtype=x.dtype, device=x.device) for _ in range(2))
        dw, db = (torch.zeros(N, dtype=torch.float32, device=x.device) for _ in range(2))
        if not M:
            return dx, dw, db
        tensors, matrices = (dy, x, w, mean, rstd), (*strides(dy), row_stride(x))

        kernel, is_learners = self._count("11a")
        rows, block, warps = _choose_tile(tables.resident(N), M)
        grid, shape = (_divide_up(M, rows),), {"ROWS": rows, "BLOCK": block, "num_warps": warps}
        named = {"dy": dy, "x": x, "w": w, "mean": mean, "rstd": rstd}
        named |= {
            "stride_dy_row": matrices[0],
            "stride_dy_col": matrices[1],
            "stride_x": matrices[2],
        }
        if is_learners:
            _launch_own("11a", kernel, grid, M, N, named | {"dx": dx} | shape)
        else:
            kernel[grid](*tensors, dx, *matrices, 1, N, M, N, CENTRED=True, HAS_W=True, **shape)

        kernel, is_learners = self._count("13b")
        launch = tables.persistent(N)
        rows, block, warps = _choose_tile(launch, M)
        programs = min(
            _divide_up(M, rows),
            launch.programs_per_multiprocessor * device.count_multiprocessors(x.device),
        )
        partials = [
            torch.empty((programs, N), dtype=torch.float32, device=x.device) for _ in range(2)
        ]
        shape = {"ROWS": rows, "BLOCK": block, "num_warps": warps}
        if is_learners:
            sums = {"dx": spare, "dw_partial": partials[0], "db_partial": partials[1]}
            _launch_own("13b", kernel, (programs,), M, N, named | sums | shape)
        else:
            kernel[(programs,)](
                *tensors,
                dy,  # no dtotal
                spare,
                *partials,
                *matrices,
                1,
                N,
                M,
                N,
                CENTRED=True,
                HAS_W=True,
                FULL=block == N,
                STAGES=launch.stages,
                **shape,
            )
        # one row per program, so only a few rows
        dw, db = (partial.sum(dim=0) for partial in partials)
        return dx, dw, db

    def _count(self, part: str) -> tuple[Any, bool]:
        self.launches[part] += 1
        return self._kernels[part]


_COURSE = {
    "08a": layer_norm_resident_kernel,
    "11a": norm_dx_kernel,
    "13b": norm_backward_persistent_kernel,
}


class _Wiring:
    """The course's own answer to exercise 14a."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor | None, b: Tensor | None, eps: float) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        y, mean, rstd = launchers.launch_forward(rows, w, b, eps)
        ctx.save_for_backward(rows, w, b, mean, rstd)
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        rows, w, b, mean, rstd = ctx.saved_tensors
        dx, dw, db = launchers.launch_backward(
            dy.reshape(rows.shape).contiguous(), rows, w, mean, rstd
        )
        return (
            dx.view(dy.shape),
            None if w is None else dw.to(w.dtype),
            None if b is None else db.to(b.dtype),
            None,
        )


def gather_norm() -> OwnNorm:
    """Check the learner's files of 08a, 11a, 13b and 14a, and make a norm of those that pass. Each
    attempted one takes seconds.

    The course's part replaces a file that is missing, not attempted or wrong, or that cannot be run
    here; ``parts`` gives the reasons.
    """
    return OwnNorm(*read_passing_sources(ROLES))


def read_passing_sources(exercise_ids: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Check the learner's files of these exercises. Return the code of each that passes, and for
    each other one the reason, both by exercise."""
    sources: dict[str, str] = {}
    why: dict[str, str] = {}
    for key in exercise_ids:
        try:
            sources[key] = _read_passing(key)
        except CourseError as reason:
            why[key] = str(reason)
    return sources, why


def load_parts(
    roles: Mapping[str, str],
    sources: Mapping[str, str],
    why: Mapping[str, str],
    *,
    is_pytorchs: bool = False,
) -> tuple[dict[str, types.ModuleType], tuple[Part, ...]]:
    """Load the learner's code of some of the parts. Return its modules by exercise, and all parts.

    Args:
        roles: the role of each part by exercise.
        sources: the learner's code by exercise. Code that raises when it is run here is no part.
        why: the reasons of the parts that ``sources`` lacks.
        is_pytorchs: whether PyTorch, and not the course, makes what the learner does not.
    """
    loaded, why = {}, dict(why)
    for key, source in sources.items():
        try:
            loaded[key] = execute(key, source)
        except CourseError as reason:
            why[key] = str(reason)
    parts = tuple(
        Part(key, role, key in loaded, why.get(key, ""), is_pytorchs) for key, role in roles.items()
    )
    return loaded, parts


def load_passing(exercise_id: str) -> types.ModuleType:
    """Load the learner's file of an exercise as a module of this process, if it passes its check.
    The first call takes seconds.

    Raises: CourseError with the reason if the file does not pass, or raises when it is run here.
    """
    return execute(exercise_id, _read_passing(exercise_id))


def _launch_own(
    exercise_id: str,
    kernel: Any,
    grid: tuple[int, ...],
    M: int,
    N: int,
    arguments_by_name: Mapping[str, Any],
) -> None:
    arguments, constants = order_arguments(exercise_id, M, N, arguments_by_name)
    kernel[grid](*arguments, **constants, num_warps=arguments_by_name["num_warps"])


_checked: dict[tuple[str, str], str] = {}  # exercise and text -> its verdict's status


def _read_passing(exercise_id: str) -> str:
    """Return the learner's code of an exercise, as the grader reads it, if it passes.

    Raises: CourseError with the reason if it does not pass.
    """
    exercise = catalog.get(exercise_id)
    try:
        text, code = grading.read_own_attempt(exercise)
    except grading.NotAttempted:
        raise CourseError(
            _("your {id} is still as the course wrote it.").format(id=exercise_id)
        ) from None
    except grading.Unreadable as unreadable:
        raise CourseError(
            _("your {id} cannot be read: {reason}").format(id=exercise_id, reason=unreadable)
        ) from None
    if _checked.get((exercise_id, text)) != grading.PASS:
        verdict = grading.check(exercise)
        if verdict.status == grading.GRADER_FAULT:
            raise CourseError(
                _("your {id} could not be checked: {reason}").format(
                    id=exercise_id, reason=verdict.message
                )
            )
        if verdict.status != grading.PASS:
            raise CourseError(
                _("your {id} does not pass yet; its panel says why.").format(id=exercise_id)
            )
        if grading.read_own_attempt(exercise)[0] != text:
            raise CourseError(
                _("your {id} was changed while it was checked. Run the cell again.").format(
                    id=exercise_id
                )
            )
        _checked[exercise_id, text] = verdict.status
    return code.source


def execute(exercise_id: str, source: str) -> types.ModuleType:
    """Run the graded code as a module; its line numbers are those of the learner's file."""
    name = f"own_{exercise_id}_{next(_numbers)}"
    file = f"<your {texts.find_file(catalog.get(exercise_id)).name}, {name}>"
    # Triton reads a kernel's text from linecache
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    sys.modules[name] = module  # Triton finds a kernel's module by its name
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except Exception as raised:
        raise CourseError(
            _("your {id} passes its check and raises here: {error}").format(
                id=exercise_id, error=f"{type(raised).__name__}: {raised}"
            )
        ) from raised
    return module


@contextlib.contextmanager
def _replace_launchers(forward: Callable[..., Any], backward: Callable[..., Any]) -> Iterator[None]:
    """Replace the two launch functions of ``course_lib.norms.launchers`` by these inside the
    block."""
    before = launchers.launch_forward, launchers.launch_backward
    launchers.launch_forward, launchers.launch_backward = forward, backward
    try:
        yield
    finally:
        launchers.launch_forward, launchers.launch_backward = before


def _choose_tile(
    launch: tables.TileLaunch | tables.PersistentLaunch, M: int
) -> tuple[int, int, int]:
    """Return ROWS, BLOCK and num_warps. On a GPU they come from the launch table; in CPU mode ROWS
    is as large as possible."""
    rows = launch.rows
    if course_lib.MODE == "cpu":
        rows = min(tables.next_power_of_2(max(M, 1)), max(1, _TILE // launch.block))
    return rows, launch.block, launch.num_warps


def _divide_up(M: int, rows: int) -> int:
    return -(-M // rows)


def _check_matrix(matrix: Tensor, name: str, *, any_stride: bool = False) -> Tensor:
    if matrix.ndim != 2:
        raise ValueError(
            _(
                "{name} has shape {shape}; the kernels take matrices (M, N). Flatten the leading"
                " dimensions first."
            ).format(name=name, shape=tuple(matrix.shape))
        )
    if not any_stride and matrix.shape[1] > 1 and matrix.stride(1) != 1:
        raise ValueError(
            _(
                "the columns of {name} are {stride} elements apart; the kernels take rows of packed"
                " elements."
            ).format(name=name, stride=matrix.stride(1))
        )
    return matrix


def _fill(vector: Tensor | None, value: float, like: Tensor) -> Tensor:
    """Return ``vector``, or if it is None a vector of ``value`` with one element per column of
    ``like``."""
    if vector is not None:
        return vector.detach().contiguous()
    return torch.full((like.shape[1],), value, dtype=torch.float32, device=like.device)
