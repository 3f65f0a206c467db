"""The base class of the kinds of exercises, and the ways to run one.

Each kind is a class in a module of its own in ``kinds/``. The module has the name that the field
``kind`` of an exercise has, and its ``KIND`` says how a file of this kind is read, checked, run and
judged. No other module asks for a kind by its name.
"""

from __future__ import annotations

import abc
import ast
import functools
import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from course_lib.base import paths
from course_lib.base.translation import gettext as _
from course_lib.sandbox.isolation import Needs
from course_lib.sandbox.jobs import ResourceLimits
from course_lib.sandbox.machine import ServerKind

if TYPE_CHECKING:
    from course_lib.launching.faults import Raised

# PyTorch takes several seconds to import, and longer on a busy machine.
WITH_PYTORCH = ResourceLimits(start=120.0)


@dataclass(frozen=True)
class Mode:
    """A way to run the cases of a kind, in a confined process.

    Attributes:
        name: the name in verdicts: "cpu" (interpreted), "gpu" (compiled), or that of the kind.
        where: says where the code runs, for a verdict.
        runner: the class that runs a case, as "module:class" in ``course_lib.grading.execution``.
        device: "cpu" or "gpu" if the code launches kernels, otherwise "cpu".
        needs: the access that the sandbox leaves open.
        limits: the limits of a job.
        interpreted_by: the name of the mode that interprets what this mode compiles; "" if this
            mode compiles nothing. Its runs come beside those of this mode.
        asks_compiler: True if a pass also needs the answer of a GPU's compiler, because this mode
            does not ask it, and this machine can.
    """

    name: str
    where: str
    runner: str
    device: str = "cpu"
    needs: Needs = Needs.NOTHING
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    interpreted_by: str = ""
    asks_compiler: bool = False

    @property
    def compiles(self) -> bool:
        return bool(self.interpreted_by)

    @property
    def server(self) -> ServerKind:
        """The kind of server that runs the jobs of this mode."""
        make = "course_lib.grading.execution.child:make_machine"
        return ServerKind(make, self.name, self.device, self.needs)


class Kind(abc.ABC):
    """A kind of exercise.

    Attributes:
        modes: the ways to run it. The first one runs on every machine.
        needs_pytorch: True if a check needs PyTorch, which a browser tab does not have.
        is_of_kernels: True if the entry points are kernels, and not functions.
        counts_parts: True if each entry point is judged and counted by itself. The outputs then say
            what it did, and are no tensors to compare.
        shuffles_cases: True if a case's number must not tell what the case is.
        step_imports: the imports that are made for the cell of a step; "" if this kind has no
            steps.
    """

    modes: tuple[Mode, ...]
    needs_pytorch = False
    is_of_kernels = False
    counts_parts = False
    shuffles_cases = False
    step_imports = ""

    @property
    def base_mode(self) -> Mode:
        """The mode that runs on every machine."""
        return self.modes[0]

    def choose_mode(self, asked_mode: str | None) -> str:
        """Return the name of the mode for a caller that wants "cpu", "gpu", or what this machine
        has (None).

        Raises: EnvironmentFault if the kind depends on the machine, and the machine has no mode.
        """
        return self.base_mode.name

    # ---- reading a file, in the process that reads

    @abc.abstractmethod
    def describe_needed_imports(self) -> str:
        """Say which imports an exercise of this kind needs."""

    @abc.abstractmethod
    def find_entry_points(
        self, tree: ast.Module, file: str, entry_points: tuple[str, ...]
    ) -> str | None:
        """Return None if the entry points are in the file, else the name of a class that has all of
        them as methods which need no object.

        Raises: Unreadable if one is missing. ``file`` is the file's name, for messages.
        """

    # ---- checking the code, in the process that runs it

    @abc.abstractmethod
    def check_code(self, tree: ast.Module, text: str, forbidden: dict[str, str], file: str) -> None:
        """Check what was cut out of ``file``, as ``text`` and parsed, before any of it runs.

        Raises: Unreadable at the first line that the kind or the exercise does not allow.
        """

    # ---- judging, in the grader's process

    @abc.abstractmethod
    def find_cause_of_exception(self, raised: Raised) -> str:
        """Return the cause of an exception that the code raised."""

    def describe_pass(self, judged: list[Any]) -> str:
        """Say what a pass has shown. ``judged`` has the judged cases."""
        return _("All {count} cases are right.").format(count=len(judged))


@functools.cache
def find_kind(name: str) -> Kind:
    """Return the kind of this name.

    Raises: ModuleNotFoundError if there is none.
    """
    return importlib.import_module(f"course_lib.grading.kinds.{name}").KIND


@functools.cache
def find_mode(name: str) -> Mode:
    """Return the mode of this name. Raises: KeyError if there is none."""
    return {mode.name: mode for kind in load_kinds() for mode in kind.modes}[name]


def load_kinds() -> list[Kind]:
    """Import all kinds and return them. A process imports them before it confines itself, because
    it cannot read the course afterwards."""
    return [find_kind(name) for name in paths.list_kinds()]
