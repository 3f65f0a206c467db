"""The cut that makes an exercise out of its solution.

A solution marks the code that the learner writes::

    # BEGIN SOLUTION
    #: What this part has to do, in one or two sentences.
    ...code...
    # END SOLUTION

The exercise keeps all other lines, so that a learner only adds lines. In place of the code it has
the sentences, with the number of lines of the solution: ``# YOUR CODE, about 3 lines: What this
part has to do.`` A single ``#:`` without words leaves ``# YOUR CODE`` alone, for a task whose
docstring says all.

If the learner repairs code, lines that start with ``#|`` hold the faulty code that the exercise
shows, and the sentences begin with ``# REPAIR``.
"""

from __future__ import annotations

import ast
import re
import textwrap

from course_lib.base.errors import CourseError

BEGIN = "# BEGIN SOLUTION"
END = "# END SOLUTION"
WIDTH = 118  # columns of a task in a file
# columns of a task in a cell, which a page of JupyterLab shows without a line break
CELL_WIDTH = 84


def cut(solution: str, name: str = "solution", width: int = WIDTH) -> str:
    """Return the text of the exercise. The learner's task is a comment of at most ``width``
    columns.

    Raises: CourseError, with the line, if the marks do not pair up, a part has no task sentence or
    no code, or nothing is cut.
    """
    out: list[str] = []
    part: list[str] | None = None
    opened = parts = 0
    for number, line in enumerate(solution.splitlines(), start=1):
        mark = line.strip()
        if mark == BEGIN:
            if part is not None:
                raise CourseError(
                    f"{name}, line {number}: a second {BEGIN!r} before the {END!r} of line"
                    f" {opened}. Close the first one."
                )
            part, opened = [], number
        elif mark == END:
            if part is None:
                raise CourseError(
                    f"{name}, line {number}: {END!r} without a {BEGIN!r}. Add the missing mark."
                )
            out.append(_write_task(part, f"{name}, line {opened}", width))
            part, parts = None, parts + 1
        elif part is not None:
            part.append(line)
        else:
            out.append(line)
    if part is not None:
        raise CourseError(f"{name}, line {opened}: {BEGIN!r} is never closed. Add {END!r}.")
    if parts == 0:
        raise CourseError(f"{name}: no {BEGIN!r}; nothing would be left for the learner to write.")
    return _make_parseable("\n".join(out) + "\n", name)


def drop_marks(solution: str) -> str:
    """Return the code of a solution without the marks, the task sentences and the code that a
    repair starts from."""
    marks = (BEGIN, END, "#:", "#|")
    return "".join(
        line for line in solution.splitlines(keepends=True) if not line.strip().startswith(marks)
    )


def fill_in(exercise: str, solution: str, width: int = WIDTH) -> str:
    """Return the text of an exercise with the solution's code in the place of each task that still
    stands in it.

    ``exercise`` was cut from ``solution``, and a person may have edited it since.
    """
    for part in re.findall(
        rf"^[ \t]*{BEGIN}\n(.*?)^[ \t]*{END}$", solution, re.MULTILINE | re.DOTALL
    ):
        task = _write_task(part.splitlines(), "the solution", width)
        exercise = exercise.replace(task, drop_marks(part).rstrip("\n"), 1)
    return exercise


def _write_task(part: list[str], where: str, width: int) -> str:
    code = [line for line in part if line.strip() and not line.strip().startswith("#")]
    wrong_lines = [
        re.sub(r"#\| ?", "", line, count=1) for line in part if line.strip().startswith("#|")
    ]
    if not code:
        raise CourseError(f"{where}: this part has no code between its marks.")
    indent = code[0][: len(code[0]) - len(code[0].lstrip())]
    sentences = " ".join(
        line.strip().removeprefix("#:").strip() for line in part if line.strip().startswith("#:")
    )
    if not sentences and not any(line.strip() == "#:" for line in part):
        raise CourseError(
            f"{where}: this part does not say what it has to do. Add a line that starts with '#:'"
            " under the mark."
        )
    count = f"about {len(code)} lines" if len(code) > 1 else "1 line"
    task = textwrap.fill(
        (
            f"REPAIR: {sentences}"
            if wrong_lines
            else f"YOUR CODE, {count}: {sentences}"
            if sentences
            else "YOUR CODE"
        ),
        width=width,
        initial_indent=indent + "# ",
        subsequent_indent=indent + "# ",
        break_on_hyphens=False,
    )
    return "\n".join([task, *wrong_lines])


def _make_parseable(text: str, name: str) -> str:
    """Add ``pass`` to each block that the cut left without a statement."""
    lines = text.splitlines()
    for _ in range(len(lines)):
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            empty = _find_empty_block(lines, error.msg)
            if empty is None:
                raise CourseError(
                    f"{name}: the exercise cut from it does not parse ({error}). Check the"
                    " indentation around the marks."
                ) from error
            lines.insert(empty[0], empty[1] + "pass")
        else:
            return "\n".join(lines) + "\n"
    raise CourseError(f"{name}: the exercise cut from it does not parse.")


def _find_empty_block(lines: list[str], complaint: str) -> tuple[int, str] | None:
    """Return the line and the indentation of the ``pass`` that completes the block whose header the
    parser's ``complaint`` names."""
    header = re.search(r"expected an indented block after .* on line (\d+)", complaint)
    # Search from the header on: the part that is nearest above the reported line may belong to an
    # outer block.
    for index in range(int(header[1]) if header else len(lines), len(lines)):
        if lines[index].strip().startswith("# YOUR CODE"):
            indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
            after = index + 1
            while (
                after < len(lines)
                and lines[after].startswith(f"{indent}# ")
                and "# YOUR CODE" not in lines[after]
            ):
                after += 1
            return after, indent
    return None
