"""A job is bytes by name in, and bytes by name out, whatever carries them: the files of a folder, a
message to a worker of a browser tab, or the memory of one process."""

from __future__ import annotations

import contextlib
import json
import sys
import types
from dataclasses import asdict

import pytest

from course_lib import catalog
from course_lib.base.plain import encode
from course_lib.catalog import texts
from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.execution import runner
from course_lib.grading.kind import find_mode
from course_lib.grading.plans import make_plans
from course_lib.grading.submission.attempt import extract
from course_lib.sandbox import in_process, in_worker, jobs
from course_lib.sandbox.machine import FolderExchange, MemoryExchange
from course_lib.sandbox.stage import Stage

EX = catalog.get("04b")
MODE = find_mode(EX.kind)
PLANS = make_plans(EX)[:3]
RAISES = texts.read_solution(EX).replace(
    "    return ", "    raise ValueError('no')\n    return ", 1
)
OUTPUTS = dict.fromkeys(
    [f"{number:02}.{kind}" for number in range(len(PLANS)) for kind in ("out", "error")], 1 << 20
)


def make_job(text: str) -> tuple[dict, dict[str, bytes]]:
    kernels = extract(EX, text, f"{EX.file}.py")
    job = {"cases": [encode(CaseLaunch, plan) for plan in PLANS], "rules": kernels.rules}
    return job, runner._list_inputs(kernels, PLANS)


@pytest.fixture
def in_a_tab(monkeypatch):
    """The clock of a tab needs a Python of 3.12 or newer; these jobs need none."""
    monkeypatch.setattr(in_process, "_stopping", lambda *_: contextlib.nullcontext())
    in_process.make_machine.cache_clear()


@pytest.fixture
def fake_browser(monkeypatch, in_a_tab):
    """Modules of a browser. A "worker" answers within this process; what passes between the two
    is copied, as a browser does it."""

    class Passed:
        def __init__(self, plain):
            self.plain = plain

        def to_py(self):
            return _copy(self.plain)

    class Worker:
        def postMessage(self, message):
            pass

    def ask(worker, message, *_seconds):
        inputs, question = message.to_py()
        messages = []
        in_worker.answer(
            Passed(inputs), question, lambda outputs, answer: messages.append([outputs, answer])
        )
        return Passed([[outputs.to_py(), answer] for outputs, answer in messages])

    modules = {
        "js": types.SimpleNamespace(Object=types.SimpleNamespace(fromEntries=dict)),
        "pyodide.ffi": types.SimpleNamespace(
            to_js=lambda plain, dict_converter: Passed(_copy(plain)),
            run_sync=lambda promise: promise,
        ),
        "pyodide.code": types.SimpleNamespace(run_js=lambda _text: ask),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(in_worker, "_start_worker", Worker)
    monkeypatch.setattr(in_worker, "_idle", [])


def _copy(plain):
    """Copy plain data; bytes become a view, as those of a message are."""
    if isinstance(plain, dict):
        return {name: _copy(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_copy(value) for value in plain]
    return memoryview(bytes(plain)) if isinstance(plain, bytes | memoryview) else plain


@pytest.mark.parametrize("text", [texts.read_solution(EX), RAISES], ids=["right", "raises"])
def test_every_carrier_brings_the_same_bytes(text, fake_browser):
    job, inputs = make_job(text)
    by_folder = jobs.run(
        MODE.server, job, MODE.limits, inputs=inputs, outputs=OUTPUTS, count=len(PLANS)
    )
    in_memory = in_process.run(MODE.server, job, inputs, asdict(MODE.limits))
    by_message = in_worker.run(MODE.server, job, inputs, asdict(MODE.limits))
    assert by_folder.outputs == in_memory["outputs"] == by_message["outputs"]
    assert by_folder.outputs.keys() & {"00.out", "00.error"}
    assert by_folder.stage == in_memory["stage"] == by_message["stage"] == Stage.RUNNING
    assert by_folder.ended == in_memory["ended"] == by_message["ended"] == "finished"
    assert in_worker._idle, "the worker waits for the next job"


def test_a_worker_that_ends_leaves_what_it_had_sent(fake_browser, monkeypatch):
    job, inputs = make_job(texts.read_solution(EX))
    ask = sys.modules["pyodide.code"].run_js("")

    def end_in_the_third_case(*arguments):
        messages = ask(*arguments).plain[:4]  # the job, then three cases begin
        return types.SimpleNamespace(to_py=lambda: [*messages, [{}, "!timed out"]])

    monkeypatch.setattr(sys.modules["pyodide.code"], "run_js", lambda _text: end_in_the_third_case)
    answer = in_worker.run(MODE.server, job, inputs, asdict(MODE.limits))
    assert (answer["ended"], answer["stage"]) == ("timed out", Stage.RUNNING)
    assert answer["outputs"].keys() == {"00.out", "01.out"}


@pytest.mark.parametrize("carrier", ["folder", "memory"])
def test_a_file_can_be_placed_for_whoever_needs_a_path(carrier, tmp_path):
    if carrier == "folder":
        (tmp_path / "kernels.py").write_bytes(b"x = 1\n")
        exchange = FolderExchange(tmp_path)
    else:
        exchange = MemoryExchange({"kernels.py": b"x = 1\n"}, tmp_path)
    assert exchange.place_file("kernels.py").read_bytes() == exchange.read("kernels.py")
    exchange.write_answer({"a": 1})
    left = (
        exchange.outputs["answer.json"]
        if carrier == "memory"
        else (tmp_path / "answer.json").read_bytes()
    )
    assert json.loads(left) == {"a": 1}
