"""What does the work of a job inside its confined process, and how a server for such jobs is started."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.sandbox.isolation import Needs

_ANSWER = "answer.json"


class Machine(abc.ABC):
    """Made once in a server, from the course's code alone; every job uses it in a fork of its own, confined."""

    def attend(self, confine: Callable[[], None]) -> None:  # noqa: B027 - most machines have nothing to do here
        """Start what runs beside the job, in a process of its own. This process is not confined yet: ``confine`` confines its caller."""

    def start(self) -> None:  # noqa: B027 - most machines have nothing to do here
        """What must wait until the process is confined, such as opening a GPU. The job has not been looked at yet."""

    @abc.abstractmethod
    def work(self, job: dict[str, Any], folder: Path) -> None:
        """Do the job. The results go into ``folder``, the only place where this process may write."""


@dataclass(frozen=True)
class ServerKind:
    """One kind of server.

    Args:
        make: "module:function", which makes the machine out of ``argument``.
        device: "cpu" or "gpu", where the machine runs kernels; "" where it runs none.
        needs: what the sandbox has to leave open for this work.
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


def begin_case(folder: Path, number: int) -> None:
    """Say that case ``number``, from 0, begins: the time that a case may take counts from here."""
    (folder / f"{number:02}.begin").touch()


def write_whole(file: Path, data: bytes) -> None:
    """Write a file that is there as a whole, or not at all."""
    part = file.with_suffix(file.suffix + ".part")
    part.write_bytes(data)
    part.rename(file)


def write_answer(folder: Path, answer: Any) -> None:
    """Leave the answer of a job of :func:`course_lib.sandbox.jobs.ask`: plain data."""
    write_whole(folder / _ANSWER, json.dumps(answer).encode())
