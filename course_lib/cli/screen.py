"""The whole terminal for one command: keys as they are pressed, lines where they belong, everything
given back at the end."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import shutil
import signal
import sys
import termios
import tty

from rich.console import RenderableType
from rich.live import Live
from rich.segment import Segment, SegmentLines

from course_lib.cli.terminal import console

UP = "up"
DOWN = "down"
PAGE_UP = "page up"
PAGE_DOWN = "page down"
ESCAPE = "escape"
ENTER = "enter"
BACKSPACE = "backspace"
_NAMES = {
    "\x1b[A": UP, "\x1bOA": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\x1b": ESCAPE, "\n": ENTER, "\r": ENTER, "\x7f": BACKSPACE, "\b": BACKSPACE,
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


class Screen:
    """The terminal while the context lasts, in the main thread.

    Every way out gives it back: the end of the context, an exception, Ctrl-C (KeyboardInterrupt),
    SIGTERM and SIGHUP (SystemExit). Ctrl-Z gives it back until the process goes on. What is written
    to ``sys.stderr`` meanwhile is kept and printed at the end.
    """

    def __enter__(self) -> Screen:
        self._keyboard = sys.stdin.fileno()
        self._typed = ""
        # how often the terminal was taken: after each time, everything has to be drawn again
        self.taken = 0
        self._settings = termios.tcgetattr(self._keyboard)
        self._messages, self._stderr = io.StringIO(), sys.stderr
        self._live = Live(
            console=console(),
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._handlers = {
            number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)
        }
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._pause)
        sys.stderr = self._messages
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._give_back()
        sys.stderr = self._stderr
        sys.stderr.write(self._messages.getvalue())
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def size(self) -> tuple[int, int]:
        """Return the columns and rows of the terminal at this moment."""
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        if not (columns and rows):
            columns, rows = shutil.get_terminal_size()
        return columns, rows

    def read_key(self, seconds: float) -> str:
        """Return the next key, or wait that long for one: a character, one of the names above, or
        "" if none was pressed.

        Raises: EOFError if the terminal is gone.
        """
        if not self._typed and select.select([self._keyboard], [], [], seconds)[0]:
            data = os.read(self._keyboard, 1024)
            if not data:
                raise EOFError("the terminal was closed")
            self._typed = data.decode("utf-8", "ignore")
        match = _KEY.match(self._typed)
        if match is None:
            return ""
        self._typed = self._typed[match.end() :]
        return _NAMES.get(match.group(), match.group())

    def draw(self, lines: list[list[Segment]]) -> None:
        """Show ``lines`` from the top; those below the screen are left out."""
        # rich alone would believe a COLUMNS that was exported before the terminal changed
        self._live.console.size = self.size
        self._live.update(SegmentLines(lines, new_lines=True), refresh=True)

    def _take(self) -> None:
        tty.setcbreak(self._keyboard)
        self._live.start()
        self.taken += 1

    def _give_back(self) -> None:
        # a closed terminal has no settings to restore
        with contextlib.suppress(OSError, termios.error):
            self._live.stop()
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._settings)

    def _pause(self, *_: object) -> None:
        self._give_back()
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # the process stops here until SIGCONT
        signal.signal(signal.SIGTSTP, ours)
        self._take()


def render(renderable: RenderableType, columns: int) -> list[list[Segment]]:
    """Return the lines that rich draws of ``renderable`` in that width, with the colours of this
    terminal."""
    drawing = console()
    return drawing.render_lines(renderable, drawing.options.update(width=columns), pad=False)


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)
