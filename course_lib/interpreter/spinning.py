"""Prove that a program waits: it returns to an operation in the same state, and only another
program can change that state."""

from __future__ import annotations

import sys
import types

import numpy as np

from course_lib.interpreter import hooks
from course_lib.interpreter.findings import ScheduledStep

_CYCLE = 8  # operations in the longest spin loop that is recognised


class Spin:
    """Proves that a program repeats a loop, and notices when another program ends that.

    The operation from which the search starts is the anchor. When the program reaches it again, its
    variables are kept. When it reaches it a third time with equal variables, and no byte read in
    between has changed, the next turn must be the same. For a line that was the anchor of such a
    proof before, the variables are kept at once, so that a wait for a busy lock is short.
    """

    def __init__(self, outermost: types.CodeType):
        """Take ``outermost``, the function that lets the programs go on. Its frame does not belong
        to the kernel."""
        self._outermost = outermost
        self._known: set[tuple[str, int]] = set()
        self.forget()

    def forget(self) -> None:
        """Forget the proof: memory has changed, and the program may leave its loop."""
        self.stuck = False
        self._turn: list[ScheduledStep] = []  # the steps since the anchor, which is the first
        self._state = None

    def note_step(self, step: ScheduledStep) -> None:
        """Note that the program is about to make ``step``, which changes nothing. Called while the
        program runs."""
        if self.stuck:
            return
        again = bool(self._turn) and self._turn[0] == step
        if not again and self._turn and len(self._turn) < _CYCLE:
            self._turn.append(step)
            return
        place = step.file, step.line
        state = read_variables(self._outermost) if again or place in self._known else None
        if again and state == self._state:
            self.stuck = True
            self._known.add(place)
        else:
            self._turn, self._state = [step], state

    def note_write(self, address: int, size: int) -> None:
        """Note that another program changes bytes in this range. Forget the proof if this program
        reads them."""
        if any(
            step.address < address + size and address < step.address + step.size
            for step in self._turn
        ):
            self.forget()

    def find_wait(self) -> ScheduledStep:
        """Return the operation of the loop that is shown as the wait: the first atomic, or else the
        first read."""
        reads = [step for step in self._turn if step.lanes]
        return next(
            (step for step in reads if step.kind != "load"), reads[0] if reads else self._turn[0]
        )


def read_variables(outermost: types.CodeType) -> list:
    """Return position and local variables of every frame of the kernel, comparable by ==. The frame
    of ``outermost`` does not belong to it.

    Called while the program runs.
    """
    frames, frame = [], sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        if not hooks.is_machinery(frame.f_code.co_filename):
            frames.append(
                (
                    frame.f_code,
                    frame.f_lasti,
                    {name: _freeze(value) for name, value in frame.f_locals.items()},
                )
            )
        frame = frame.f_back
    return frames


_FIXED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


def _freeze(value):
    """Return a value that equals another one only if both mean the same to the kernel. A value of
    an unknown type equals no other."""
    import triton.language as tl

    data = getattr(getattr(value, "handle", None), "data", None)
    if isinstance(data, np.ndarray):
        return str(value.dtype), data.shape, data.tobytes()
    if isinstance(value, (bool, int, float, str, type(None), tl.dtype)):
        return type(value), value
    if isinstance(value, tl.constexpr):
        return _freeze(value.value)
    if isinstance(value, tuple):
        return tuple(_freeze(item) for item in value)
    if isinstance(value, _FIXED) or hasattr(value, "rewrite"):
        return id(value)
    return object()
