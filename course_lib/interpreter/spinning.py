"""Proof that a program waits: it comes back to an operation with everything as it was, and only another program can change that."""

from __future__ import annotations

import sys
import types

import numpy as np

from course_lib.interpreter import hooks
from course_lib.interpreter.findings import ScheduledStep

_CYCLE = 8  # operations in the longest spin loop that is recognised


class Spin:
    """Proof that a program goes round in circles, and until when.

    The operation it started looking from is the anchor. Met again, its variables are kept; met a third time with equal
    variables and with all bytes read in between untouched, the next turn can only be the same one. A line that has been
    an anchor of such a proof before has its variables kept at once, so a wait on a busy lock is short.
    """

    def __init__(self, outermost: types.CodeType):
        """``outermost``: the function in which the program's thread calls the kernel; its frame is none of the kernel's."""
        self._outermost = outermost
        self._known: set[tuple[str, int]] = set()
        self.forget()

    def forget(self) -> None:
        """Something has changed: the program may get out of its loop."""
        self.stuck = False
        self._turn: list[ScheduledStep] = []  # since the anchor, the anchor first
        self._state = None

    def note_step(self, step: ScheduledStep) -> None:
        """The program is about to make ``step``, which changes nothing. Called from its own thread."""
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
        """Another program changes bytes in this range: does this one read them?"""
        if any(step.address < address + size and address < step.address + step.size for step in self._turn):
            self.forget()

    def find_wait(self) -> ScheduledStep:
        """The operation of the loop that a person would call the wait: the first atomic, or else the first read."""
        reads = [step for step in self._turn if step.lanes]
        return next((step for step in reads if step.kind != "load"), reads[0] if reads else self._turn[0])


def read_variables(outermost: types.CodeType) -> list:
    """Place and local variables of every frame of the kernel, comparable by ==; the frame of ``outermost`` is none of the kernel's.

    Called from the program's own thread.
    """
    frames, frame = [], sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        if not hooks.is_machinery(frame.f_code.co_filename):
            frames.append(
                (frame.f_code, frame.f_lasti, {name: _freeze(value) for name, value in frame.f_locals.items()})
            )
        frame = frame.f_back
    return frames


_FIXED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


def _freeze(value):
    """A value that equals another one only if both mean the same to the kernel; what is not known never does."""
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
