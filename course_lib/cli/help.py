"""Format `course --help`: plain text with the commands in groups, which needs no library that
draws.

typer's own boxes take longer to load than all the rest of the command.
"""

from __future__ import annotations

import re
from typing import Any

import typer
import typer.core

from course_lib.base import paths
from course_lib.base.translation import (
    KEEP_LINES,
    choose_language,
    join_lines,
    split_help,
    translate,
)
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_

START = N_("Begin")
LEARN = N_("Work through the exercises")
MEASURE = N_("Measure")
KEEP = N_("Keep the course working")
AUTHOR = N_("For authors")
TEACH = N_("For instructors")
# What typer writes around the course's own words
_FRAME = (
    N_("Usage: "),
    N_("Arguments:"),
    N_("Options:"),
    N_("Show this message and exit."),
    N_("[required]"),
    N_("[default: "),
)
# Typer's own options; their help is translated as that of the course's
_COMPLETION = (
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
)
# What typer says of wrong use; the command translates it when it is filled
_WRONG_USE = (
    N_("No such command {command}."),
    N_("No such command {command}. Did you mean {other}?"),
    N_("No such option: {option}"),
    N_("No such option: {option} Did you mean {other}?"),
    N_("No such option: {option} (Possible options: {other})"),
    N_("Missing argument {argument}."),
    N_("Missing option {argument}."),
    N_("Missing command."),
    N_("Got unexpected extra argument(s) ({arguments})"),
    N_("Option {option} requires an argument."),
    N_("Option {option} requires {count} arguments."),
    N_("Option {option} does not take a value."),
    N_("Invalid value for {option}: {reason}"),
    N_("Input should be a valid integer, unable to parse string as an integer"),
    N_("Value error, {value} is not one of {values}."),
)


_HEADING = re.compile("(?m)(?<=[\u4e00-\u9fff]):$")  # the colon of a Chinese heading
# columns, of a paragraph and of what stands beside the names of options
_WIDTH, _OPTION_WIDTH = 76, 48


def _translate_help(command: Any) -> None:
    """Translate in place what ``--help`` says of this command and of its options."""
    if choose_language() == "en":
        return
    command.help = _translate(command.help, _WIDTH)
    command.epilog = _translate(command.epilog, _WIDTH)
    for parameter in command.params:
        if getattr(parameter, "help", None):
            parameter.help = _translate(parameter.help, _OPTION_WIDTH)


def _translate(text: str | None, width: int) -> str | None:
    return (
        "\n\n".join(
            _wrap(translate(paragraph, "interface"), width) for paragraph in split_help(text)
        )
        or text
    )


def _wrap(text: str, width: int) -> str:
    """Break a paragraph of one line into several. Click, which counts letters and not their width,
    then leaves them alone."""
    # here, because its library is slow to import, and English needs neither
    from course_lib.catalog.comments import wrap

    return KEEP_LINES + (text if "\n" in text else "\n".join(wrap(text, width)))


class _Context(typer.Context):
    def get_help(self) -> str:
        """Return the text of ``--help`` with typer's own words in the chosen language, too."""
        text = super().get_help()
        for words in _FRAME:
            text = text.replace(words, _(words))
        return _HEADING.sub("：", text)


class GroupedCommands(typer.core.TyperGroup):
    """The commands under the headings that ``rich_help_panel`` gives them, in the order in which
    they were added."""

    context_class = _Context

    def get_command(self, ctx, cmd_name):
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _translate_help(command)
            command.context_class = _Context
        return command

    def format_help(self, ctx, formatter) -> None:
        _translate_help(self)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx, formatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        left_out = (
            {AUTHOR, TEACH} if paths.is_release() else {AUTHOR} if paths.is_installed() else set()
        )
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert isinstance(command, typer.core.TyperCommand | typer.core.TyperGroup), (
                f"{name} is a command of typer's"
            )
            if command.rich_help_panel in left_out:
                continue
            short = command.get_short_help_str(200)
            help_text = (
                short if choose_language() == "en" else _wrap(join_lines(short), _WIDTH - 12)
            )
            groups.setdefault(translate(str(command.rich_help_panel), "interface"), []).append(
                (name, help_text)
            )
        widest = max(len(name) for rows in groups.values() for name, _ in rows)
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
