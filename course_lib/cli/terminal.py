"""What the command writes to: results on standard output, messages on standard error."""

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
    """Standard output as it is now: its width, its colours, and plain text of 80 columns where it is no terminal."""
    from rich.console import Console  # loaded when something is drawn: `course --help` should not wait for it

    return Console(highlight=False, emoji=False)


def show(*renderables: object) -> None:
    """Print text with rich's markup, or anything else that rich draws, on standard output."""
    console().print(*renderables)


def say(message: str) -> None:
    """Print a message on standard error: wrapped at words in a terminal, in whole lines elsewhere.

    Where nothing can be written there, nobody is left to be told, and the exit code says it all.
    """
    if sys.stderr is None:  # closed by whoever started the command
        return
    lines = make_visible(message).expandtabs().splitlines()
    if sys.stderr.isatty():
        width = max(20, shutil.get_terminal_size().columns)
        lines = [part for line in lines for part in wrap(line, width, line[: len(line) - len(line.lstrip())])]
    with contextlib.suppress(OSError):
        print("\n".join(lines), file=sys.stderr, flush=True)


def open_nowhere() -> TextIO:
    """What stands for a standard output that was closed: each attempt to write fails, as on a full device."""
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


class Output:
    """Standard output that remembers what kept it from being written: no error of a file is taken for one of the output."""

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
        """Let go what cannot be written, so that the interpreter does not try once more when it ends."""
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
