"""A compilation as typed data: what the process that compiles is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CompileJob:
    """A kernel to compile for ``arch`` (90 for sm_90). ``units``, ``positional`` and ``named`` are
    described, see ``units.py``.

    ``through`` is the last stage: "ttir", "cubin", or "report", which also describes the result.
    """

    name: str
    units: list[dict[str, Any]]
    positional: list[dict[str, Any]]
    named: dict[str, dict[str, Any]]
    num_warps: int = 4
    arch: int = 90
    through: str = "report"
    num_stages: int | None = None
    maxnreg: int | None = None
    disassemble: bool = False


@dataclass(frozen=True)
class Lines:
    """The lines of ``ptx`` and ``sass`` made from one line of the kernel, by their numbers from
    1."""

    ptx: tuple[int, ...]
    sass: tuple[int, ...]


@dataclass(frozen=True)
class Compiled:
    """The compiler's results for a kernel; :class:`course_lib.compiler.CompileReport` says what the
    fields mean."""

    registers: int
    spill_bytes: int
    shared_bytes: int
    loads: dict[int, int] | None
    stores: dict[int, int] | None
    ptx: str
    sass: str | None
    ttir: str
    ttgir: str
    lines: dict[int, Lines]
    seconds: float


@dataclass(frozen=True)
class Refusal:
    """The cause, a sentence, and the place (number of the unit, line from 1, column from 0) of what
    ended a compilation."""

    cause: str
    sentence: str
    unit: int
    line: int
    column: int


@dataclass(frozen=True)
class CompilerAnswer:
    """The answer to one job: the refusal, or the report if one was asked for."""

    report: Compiled | None = None
    refusal: Refusal | None = None
