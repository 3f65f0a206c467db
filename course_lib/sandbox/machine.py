"""The base class of the machines that do a job in a confined process, and the description of a
server for such jobs."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.sandbox.isolation import Needs

_ANSWER = "answer.json"


class Stopped(BaseException):
    """The exception that ends a job where no process can be killed. Its text says how the job
    ended. No machine catches it."""


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
    def work(self, job: dict[str, Any], folder: Path) -> None:
        """Do the job. Write the results into ``folder``, the only place where this process may
        write."""


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


# called when a case has begun; the worker of a browser tab sets it
on_begin: Callable[[], None] | None = None


def begin_case(folder: Path, number: int) -> None:
    """Report that case ``number``, counted from 0, begins. The time limit of the case begins
    here."""
    (folder / f"{number:02}.begin").touch()
    if on_begin is not None:
        on_begin()


def write_whole(file: Path, data: bytes) -> None:
    """Write a file so that a reader finds it complete or not at all."""
    part = file.with_suffix(file.suffix + ".part")
    part.write_bytes(data)
    part.rename(file)


def write_answer(folder: Path, answer: Any) -> None:
    """Write ``answer``, which is plain data, for :func:`course_lib.sandbox.jobs.ask`."""
    write_whole(folder / _ANSWER, json.dumps(answer).encode())
