"""Format `course --help`: plain text with the commands in groups, which needs no library that draws.

typer's own boxes take longer to load than all the rest of the command.
"""

from __future__ import annotations

import typer.core

from course_lib.base import paths

START = "Begin"
LEARN, MEASURE, KEEP = "Work through the exercises", "Measure", "Keep the course working"
AUTHOR = "For authors"
TEACH = "For instructors"


class GroupedCommands(typer.core.TyperGroup):
    """The commands under the headings that ``rich_help_panel`` gives them, in the order in which they were added."""

    def format_commands(self, ctx, formatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        left_out = {AUTHOR, TEACH} if paths.is_release() else {AUTHOR} if paths.is_installed() else set()
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert isinstance(command, typer.core.TyperCommand | typer.core.TyperGroup), f"{name} is a command of typer's"
            if command.rich_help_panel in left_out:
                continue
            groups.setdefault(str(command.rich_help_panel), []).append((name, command.get_short_help_str(200)))
        widest = max(len(name) for rows in groups.values() for name, _ in rows)
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
