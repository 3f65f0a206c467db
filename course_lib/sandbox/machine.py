"""The base class of the machines that do a job in a confined process, the ways in which a job's
bytes come and go, and the description of a server for such jobs."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.sandbox.isolation import Needs

ANSWER = "answer.json"


class Stopped(BaseException):
    """The exception that ends a job where no process can be killed. Its text says how the job
    ended. No machine catches it."""


class Exchange(abc.ABC):
    """The bytes that a job gets and leaves, each by a name.

    Attributes:
        folder: the only folder in which the job's process may write. What the job leaves there
            under other names is lost.
    """

    folder: Path

    @abc.abstractmethod
    def read(self, name: str) -> bytes:
        """Return the bytes that came with the job under this name."""

    @abc.abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Leave bytes under this name. A reader finds them complete or not at all."""

    @abc.abstractmethod
    def begin_case(self, number: int) -> None:
        """Report that case ``number``, counted from 0, begins. The time limit of the case begins
        here."""

    def place_file(self, name: str) -> Path:
        """Return a file in ``folder`` with the bytes that came with the job under this name."""
        file = self.folder / name
        if not file.exists():
            file.write_bytes(self.read(name))
        return file

    def write_answer(self, answer: Any) -> None:
        """Leave ``answer``, which is plain data, for :func:`course_lib.sandbox.jobs.ask`."""
        self.write(ANSWER, json.dumps(answer).encode())


class FolderExchange(Exchange):
    """An exchange through files. Both sides see ``folder``; the other process reads it as the work
    of somebody who may be hostile."""

    def __init__(self, folder: Path):
        self.folder = folder

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        part = self.folder / f"{name}.part"
        part.write_bytes(data)
        part.rename(self.folder / name)

    def begin_case(self, number: int) -> None:
        (self.folder / f"{number:02}.begin").touch()


class MemoryExchange(Exchange):
    """An exchange within one process.

    Attributes:
        outputs: what the job has left, and ``on_begin`` has not taken.
        begun: the number of cases that have begun.
        on_begin: called with the outputs when a case begins, to pass them on.
    """

    def __init__(
        self,
        inputs: Mapping[str, bytes],
        folder: Path,
        on_begin: Callable[[dict[str, bytes]], None] | None = None,
    ):
        self._inputs, self.folder, self._on_begin = inputs, folder, on_begin
        self.outputs: dict[str, bytes] = {}
        self.begun = 0

    def read(self, name: str) -> bytes:
        return bytes(self._inputs[name])  # a message brings a view

    def write(self, name: str, data: bytes) -> None:
        self.outputs[name] = data

    def begin_case(self, number: int) -> None:
        self.begun = number + 1
        if self._on_begin is not None:
            self._on_begin(self.outputs)
            self.outputs = {}


class Machine(abc.ABC):
    """A kind of work. A server makes the machine once, from the course's code alone; each job then
    uses it in a confined fork."""

    def attend(self, confine: Callable[[], None]) -> None:  # noqa: B027 - most machines have nothing to do here
        """Start the helpers that run beside the job, each in its own process. This process is not
        confined yet: ``confine`` confines its caller.
        """

    def start(self) -> None:  # noqa: B027 - most machines have nothing to do here
        """Do what needs a confined process but no job, such as opening a GPU. The job has not been
        read yet."""

    @abc.abstractmethod
    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        """Do the job. ``exchange`` has the bytes that came with it, and takes the results."""


@dataclass(frozen=True)
class ServerKind:
    """A kind of server.

    Args:
        make: "module:function"; the function makes the machine from ``argument``.
        device: "cpu" or "gpu" if the machine runs kernels, otherwise "".
        needs: the access that the sandbox has to leave open for this work.
    """

    make: str
    argument: str = ""
    device: str = ""
    needs: Needs = Needs.NOTHING

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServerKind:
        plain = json.loads(text)
        return cls(**plain | {"needs": Needs(plain["needs"])})
