"""The engine, which sends files to any executor for checking and stores each verdict in the
journal.

It does not depend on learners, exercises or grading.

- The number of files that are sent off and not yet answered has a limit, so memory does not grow
  with the class.
- A grader fault or a fault of the machine proves nothing about a file. The engine tries such a file
  three times in all, then lists it apart. The journal does not store these faults, so the next run
  tries again.
- If a worker dies, all files that were sent off are lost. The engine then checks each of them
  alone, to find the file that kills workers. The other files get their verdicts.
- If three different files in a row cannot be checked because of the machine, the engine stops with
  an exception that explains why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from course_lib.base.errors import EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.grading.verdict import GRADER_FAULT

TRIES = 3
_MOST_MACHINE_FAULTS = 3


class CheckAnswer(Protocol):
    """The result of the check function: a plain verdict with its status, or None and the machine's
    fault in words."""

    @property
    def verdict(self) -> dict[str, Any] | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def fault(self) -> str: ...


class VerdictStore(Protocol):
    def __contains__(self, key: str) -> bool: ...
    def append(self, key: str, verdict: dict[str, Any]) -> None: ...


@dataclass
class Job:
    """A file to check. ``request`` is passed to the worker unchanged. If ``anew``, it is checked
    although the journal has its verdict."""

    key: str
    request: object
    anew: bool = False
    tries: int = 0
    deaths: int = 0
    suspect: bool = False  # it was sent off and not answered when a worker died


@dataclass
class EngineOutcome:
    """The result of a run.

    ``faults`` has by key the reason why a file has no verdict. ``checked`` counts the verdicts made
    in this run, ``kept`` those that the journal had before.
    """

    faults: dict[str, str] = field(default_factory=dict)
    checked: int = 0
    kept: int = 0


class Engine:
    """The engine of one run.

    Args:
        start: returns a context manager that starts workers; called again after a worker died.
        check: the function that a worker runs on each request.
        journal: the store of the verdicts.
        width: limit on the files that are sent off and not yet answered.
        tell: called for each file with its key and the seconds of its check; None if this run made
            no verdict for it.
    """

    def __init__(
        self,
        start: Callable[[], AbstractContextManager[Executor]],
        check: Callable[[Any], CheckAnswer],
        journal: VerdictStore,
        *,
        width: int,
        tell: Callable[[str, float | None], None] = lambda key, seconds: None,
    ):
        self.start = start
        self.check = check
        self.journal = journal
        self.width = width
        self.tell = tell
        self.outcome = EngineOutcome()
        self._machine_faults: dict[str, str] = {}  # by key, since the last verdict

    def run(self, jobs: Iterable[Job]) -> EngineOutcome:
        """Check all files whose verdicts the journal does not have. Jobs with the same key are
        checked once.

        Raises: EnvironmentFault if the journal cannot be written, or if this machine cannot check
        files.
        """
        waiting, alone = self._leave_out_known(jobs), deque[Job]()
        again: deque[Job] = deque()
        while True:
            with self.start() as executor:
                broken = self._run_until_broken(executor, waiting, again, alone)
            if not broken:
                return self.outcome
            for job in broken:
                job.deaths, job.suspect = job.deaths + (len(broken) == 1), True
                if job.deaths >= 2:
                    self._give_up(
                        job,
                        "the process that checks it ended twice, and nothing else was checked at"
                        " the same time",
                    )
                else:
                    alone.append(job)

    def _leave_out_known(self, jobs: Iterable[Job]) -> Iterator[Job]:
        keys_seen: set[str] = set()
        for job in jobs:
            if job.key in keys_seen:
                self.tell(job.key, None)
                continue
            keys_seen.add(job.key)
            if not job.anew and job.key in self.journal:
                self.outcome.kept += 1
                self.tell(job.key, None)
            else:
                yield job

    def _run_until_broken(
        self, executor: Executor, waiting: Iterator[Job], again: deque[Job], alone: deque[Job]
    ) -> list[Job]:
        """Run all jobs and return []. If the executor breaks, return the jobs that were sent off
        and not answered."""
        running: dict[Future, Job] = {}
        while True:
            while (job := self._choose_next(running, waiting, again, alone)) is not None:
                try:
                    running[executor.submit(self.check, job.request)] = job
                except BrokenExecutor:
                    return [*running.values(), job]
            if not running:
                return []
            broken: list[Job] = []
            for future in wait(running, return_when=FIRST_COMPLETED)[0]:
                job = running.pop(future)
                try:
                    answer = future.result()
                except BrokenExecutor:
                    broken.append(job)
                # raised in the worker or on the way to it: the fault lies with the course, not with
                # the file
                except Exception as error:
                    self._try_again(
                        job, f"the check itself failed ({type(error).__name__}: {error})", again
                    )
                else:
                    job.suspect = False
                    self._take_answer(job, answer, again)
            if broken:
                return [*broken, *running.values()]

    def _choose_next(
        self,
        running: dict[Future, Job],
        waiting: Iterator[Job],
        again: deque[Job],
        alone: deque[Job],
    ) -> Job | None:
        """Return the next job to send off; None if ``width`` jobs are running, if a job has to run
        alone, or if no job is left."""
        if alone:
            return None if running else alone.popleft()
        if len(running) >= self.width or any(job.suspect for job in running.values()):
            return None
        return again.popleft() if again else next(waiting, None)

    def _take_answer(self, job: Job, answer: CheckAnswer, again: deque[Job]) -> None:
        if answer.verdict is None:
            self._machine_faults[job.key] = answer.fault
            if len(self._machine_faults) >= _MOST_MACHINE_FAULTS:
                raise EnvironmentFault(
                    join_sentences(
                        _("{count} files in a row could not be checked.").format(
                            count=len(self._machine_faults)
                        ),
                        answer.fault,
                        _(
                            "Every verdict so far is kept: give the same command again when that is"
                            " set right."
                        ),
                    )
                )
            self._try_again(job, answer.fault, again)
            return
        self._machine_faults.clear()
        if answer.verdict["status"] == GRADER_FAULT:
            self._try_again(job, answer.verdict["message"], again)
            return
        self.journal.append(job.key, answer.verdict)
        self.outcome.checked += 1
        self.tell(job.key, answer.seconds)

    def _try_again(self, job: Job, why: str, again: deque[Job]) -> None:
        job.tries += 1
        if job.tries >= TRIES:
            self._give_up(job, why)
        else:
            again.append(job)

    def _give_up(self, job: Job, why: str) -> None:
        self.outcome.faults[job.key] = why
        self.tell(job.key, None)
