"""A class and a grader that cost nothing: what is tested is what stands around the grader."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course_lib import catalog
from course_lib.classroom.checking import FileAnswer, Request
from course_lib.classroom.grade_class import ClassOptions, Graded, grade_class
from course_lib.grading.verdict import ERROR, FAIL, GRADER_FAULT, NOT_ATTEMPTED, PASS, Verdict
from course_lib.sandbox import isolation

EXERCISES = ("01a", "04a", "07a")
STATUSES = (PASS, PASS, FAIL, ERROR, NOT_ATTEMPTED)
CAUSES = {
    PASS: "none",
    FAIL: "padding_in_variance",
    ERROR: "syntax_error",
    NOT_ATTEMPTED: "not_attempted",
}


def fake_check(request: Request) -> FileAnswer:
    """A verdict that follows from the bytes alone. Some bytes are commands."""
    words = request.data.split()
    if b"KILL" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"RAISE" in words:
        raise RuntimeError("not the learner's")
    if b"MACHINE" in words:
        return FileAnswer(None, 0.1, "this machine has no room.")
    if b"FAULT" in words:
        return answer(request, GRADER_FAULT, "grader_fault")
    for word in words:
        if word.startswith(b"ONCE="):  # the first check of it goes wrong, by the course's fault
            with contextlib.suppress(FileExistsError):
                os.close(os.open(word[5:], os.O_CREAT | os.O_EXCL))
                return answer(request, GRADER_FAULT, "grader_fault")
    status = choose_status(request.data)
    return answer(request, status, CAUSES[status])


def choose_status(data: bytes) -> str:
    return STATUSES[hashlib.sha256(data).digest()[0] % len(STATUSES)]


def write_passing(text: str) -> str:
    """Return ``text`` behind a comment with which the fake grader lets it pass."""
    return next(
        made
        for number in range(1000)
        if choose_status((made := f"# {number}\n{text}").encode()) == PASS
    )


def slow_check(request: Request) -> FileAnswer:
    time.sleep(0.002)
    return fake_check(request)


def answer(request: Request, status: str, cause: str) -> FileAnswer:
    verdict = Verdict(
        request.exercise,
        status,
        cause,
        f"{status} <b>&",
        headline="What <script> is it?",
        hidden="f" * 12,
    )
    plain = verdict.as_dict()
    del plain["seconds"]
    return FileAnswer(plain, 0.5)


def write_class(folder: Path, count: int = 8) -> Path:
    """``count`` learners with two or three files each, no two alike."""
    for number in range(count):
        learner = folder / f"learner {number:03}"
        for name in EXERCISES[: 2 + number % 2]:
            write_file(learner, name, f"# {number} {name}\n")
    return folder


def write_file(folder: Path, exercise: str, text: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{catalog.get(exercise).file}.py"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(file, (1_760_000_000, 1_760_000_000))
    return file


def grade(
    folder: Path,
    out: Path,
    *,
    check=fake_check,
    workers: int = 2,
    start=None,
    tell=lambda progress: None,
    **options,
) -> Graded:
    """Grade with the fake, in threads of this process, and with a secret that is the same for every
    class."""
    secret = folder.parent / "the secret"
    secret.write_text("sixteen letters at least\n")
    settings = ClassOptions(**{"only": EXERCISES, "secret_file": secret} | options)
    return grade_class(
        folder,
        out,
        settings,
        start or (lambda: ThreadPoolExecutor(workers)),
        2 * workers,
        check=check,
        find_tier=lambda: isolation.NAMESPACES,
        tell=tell,
    )


RESULTS = ("gradebook.csv", "canvas.csv", "results.jsonl")


def read_results(out: Path) -> dict[str, bytes]:
    """Everything that must be equal, whatever happened on the way."""
    found = {name: (out / name).read_bytes() for name in RESULTS}
    return found | {
        str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*.html"))
    }
