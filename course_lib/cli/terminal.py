"""Write results on standard output, and messages on standard error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from course_lib.base.text import make_visible, wrap

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Return a console for standard output with its width and colours of this moment; for no
    terminal, plain text of 80 columns."""
    # imported only when something is drawn, because `course --help` should not wait for it
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def show(*renderables: object) -> None:
    """Print text with rich's markup, or anything else that rich draws, on standard output."""
    console().print(*renderables)


def say(message: str) -> None:
    """Print a message on standard error: wrapped at words in a terminal, in whole lines elsewhere.

    If standard error cannot be written, the message is dropped: the exit code remains.
    """
    if sys.stderr is None:  # the command was started with standard error closed
        return
    lines = make_visible(message).expandtabs().splitlines()
    if sys.stderr.isatty():
        width = max(20, shutil.get_terminal_size().columns)
        lines = [
            part
            for line in lines
            for part in wrap(line, width, line[: len(line) - len(line.lstrip())])
        ]
    with contextlib.suppress(OSError):
        print("\n".join(lines), file=sys.stderr, flush=True)


def open_nowhere() -> TextIO:
    """Return a stand-in for a standard output that was closed: each write to it fails, as on a full
    device."""
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


class Output:
    """Standard output that keeps the error of its last failed write, so that an error of a file is
    not taken for one of the output."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        with self._remembering():
            return self.stream.write(text)

    def flush(self) -> None:
        with self._remembering():
            self.stream.flush()

    def __getattr__(self, name: str):
        return getattr(self.stream, name)

    def discard(self) -> None:
        """Discard text that cannot be written, so that the interpreter does not try to write it
        once more when it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)

    @contextlib.contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error
            raise
