"""Run the cases of a job on a learner's kernel or function, without judging the outputs.

This is the last process of the chain that ``server.py`` makes, and it is confined before this
module runs. It knows no exercise: the job names an entry point, a grid and the arguments of each
case. ``NN.in`` holds the buffers of case NN one after the other, and ``NN.out`` gets them back.
Exceptions and faults go to ``NN.error``, counts to ``NN.counts``. Only the bytes are evidence for
the parent.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import linecache
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.base.plain import decode, encode
from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.execution.case_runner import (
    CODE,
    IMPORT_ERROR,
    name_counts,
    name_error,
    name_input,
    name_output,
)
from course_lib.grading.kind import find_kind, find_mode
from course_lib.grading.submission.source import Unreadable
from course_lib.launching.faults import Fault, FaultKind, Misuse, Raised
from course_lib.sandbox.machine import Exchange, Machine, Stopped

REFUSED = "Refused"  # the type under which a refusal by the exercise's rules is written


def make_machine(mode: str) -> Machine:
    """Make the object that runs cases in the mode of this name."""
    module, name = find_mode(mode).runner.split(":")
    return _CaseMachine(
        getattr(importlib.import_module(f"course_lib.grading.execution.{module}"), name)()
    )


class _CaseMachine(Machine):
    """Runs the cases of a job, one after the other. ``runs`` runs a single case."""

    def __init__(self, runs):
        self.runs = runs

    def attend(self, confine: Callable[[], None]) -> None:
        self.runs.attend(confine)

    def start(self) -> None:
        self.runs.open_device()

    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        """Run every case of the job. Once the learner's code has run, nothing that this process
        does can be trusted."""
        file, runs = exchange.place_file(CODE), self.runs
        try:
            code = _compile(file, job["rules"])
            module = _import(file, code)
        except Unreadable as refused:
            exchange.write(IMPORT_ERROR, _describe_refused(refused))
            return
        except Stopped:
            raise
        except BaseException as error:
            exchange.write(IMPORT_ERROR, _described(error, str(file)))
            return
        cases = [decode(CaseLaunch, case) for case in job["cases"]]
        runs.begin(module, code, cases, job["rules"])
        for number, case in enumerate(cases):
            exchange.begin_case(number)
            if number in job["left_out"]:
                continue
            if not self._run_case(module, case, number, file, exchange):
                return

    def _run_case(
        self,
        module: types.ModuleType,
        case: CaseLaunch,
        number: int,
        file: Path,
        exchange: Exchange,
    ) -> bool:
        """Run one case, and write what came out of it; return False if no further case can run."""
        runs, data, error = self.runs, b"", None
        try:
            data = runs.run(
                getattr(module, case.entry_point), case, exchange.read(name_input(number))
            )
        except Stopped:
            raise
        except BaseException as raised:
            error = raised
        sys.stdout.flush()
        if runs.refusal is not None:  # even if the code has caught the exception
            exchange.write(name_error(number), _describe_refused(runs.refusal, in_case=True))
            return False
        if error is not None:
            lost = runs.lost(error)
            exchange.write(name_error(number), _described(error, str(file), lost))
            return not lost
        if runs.misuse is not None:
            exchange.write(name_error(number), _described(runs.misuse, str(file)))
        if case.counted and runs.counts is not None:
            exchange.write(name_counts(number), json.dumps(runs.counts).encode())
        exchange.write(name_output(number), data)
        return True


def _compile(file: Path, rules: dict[str, Any] | None) -> types.CodeType:
    """Check the file by the ``rules``, and compile it; without rules anything runs.

    Raises: Unreadable if the file holds what its exercise refuses. Nothing of it has run then.
    """
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text, str(file))
    if rules is not None:
        tree.body[:0] = ast.parse(rules["given"]).body  # imports that the text does not contain
        find_kind(rules["kind"]).check_code(tree, text, rules["forbidden"], rules["file"])
    linecache.getlines(str(file))
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


def _import(file: Path, code: types.CodeType) -> types.ModuleType:
    described = importlib.util.spec_from_file_location("kernels", file)
    assert described is not None  # never None for a file that ends in .py
    module = importlib.util.module_from_spec(described)
    sys.modules["kernels"] = module  # Triton finds the module of a kernel by this name
    exec(code, vars(module))
    return module


def _described(error: BaseException, file: str, lost: bool = False) -> bytes:
    """Return the exception inside Triton's wrappers, and the last line of the learner's file that
    it passed, with the columns."""
    chain = [error]
    while chain[-1].__cause__ is not None and len(chain) < 20:
        chain.append(chain[-1].__cause__)
    line = column = end_column = None
    for link in chain:
        for frame in traceback.extract_tb(link.__traceback__):
            if frame.filename == file:
                line, column = frame.lineno, frame.colno
                end_column = frame.end_colno if frame.end_lineno == line else None
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if node is not None and source is not None and hasattr(node, "lineno"):
            # A compiler error counts lines from the first line of the function.
            line, column, end_column = _line_of(source, node.lineno, file) or line, None, None
    text = (
        chain[-1].args[0]
        if chain[-1].args and isinstance(chain[-1].args[0], str)
        else str(chain[-1])
    )
    # a lone surrogate could not be printed or saved
    text = text[-4000:].encode("utf-8", "replace").decode()
    fault = error.fault if isinstance(error, Misuse) else None
    return _write(Raised(type(chain[-1]).__name__, text, line, column, end_column, lost, fault))


def _describe_refused(refused: Unreadable, in_case: bool = False) -> bytes:
    """Describe what the exercise refuses, in the file or in a case, in the form of an exception."""
    line, column, end_column = refused.span or (None, None, None)
    fault = None if in_case else Fault(FaultKind(refused.cause), "", None, line)
    return _write(Raised(REFUSED, refused.what, line, column, end_column, fault=fault))


def _write(raised: Raised) -> bytes:
    return json.dumps(encode(Raised, raised)).encode()


def _line_of(function: str, offset: int, file: str) -> int | None:
    """Return the line in ``file`` of line ``offset`` (from 1) of ``function``'s text."""
    whole = Path(file).read_text()
    at = whole.find(function.strip())
    return whole[:at].count("\n") + offset if at >= 0 else None
