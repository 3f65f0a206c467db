"""Jobs in a web worker: a second Python of the same browser tab, which the notebook's Python can
wait for and end.

The worker does the job as :mod:`course_lib.sandbox.in_process` does it, with the same limits. An
endless call inside NumPy, or a recursion that crashes Python itself, cannot be stopped by that
module: here it costs the worker, and the next job gets a new one. Waiting needs a browser that can
suspend WebAssembly (JavaScript Promise Integration: Chromium since 137); in others :func:`can_wait`
is False.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.sandbox import in_process
from course_lib.sandbox.machine import ServerKind
from course_lib.sandbox.stage import Stage

_START_SECONDS = 180.0  # time in which a new worker loads Python and the course
_GRACE_SECONDS = 3.0  # time beyond a case's limit: the worker's own clock stops most jobs earlier
# A message to the worker is [inputs, question]; a message from it is [outputs, answer]. Both kinds
# of bytes are {name: bytes}, and a message has only outputs that are new. The answer is "" when a
# job or a case begins, and "!" with a text when Python has ended.
_WORKER = """
importScripts(PYODIDE + "pyodide.js");
const loaded = loadPyodide({indexURL: PYODIDE}).then(async (python) => {
    await python.loadPackage("norm-kernels-course", {messageCallback() {}});
    return python.pyimport("course_lib.sandbox.in_worker");
});
onmessage = async ({data: [inputs, question]}) => {
    try {
        const post = (outputs, answer) => postMessage([outputs, answer]);
        (await loaded).answer(inputs, question, post);
    } catch (error) {
        postMessage([{}, "!" + error]);
    }
};
"""
# Resolves to the list of all [outputs, answer]. If the last answer begins with "!", its text says
# how the worker ended.
_ASK = """
(worker, message, startSeconds, caseSeconds) => new Promise((resolve) => {
    const messages = [];
    let timer;
    const end = (words) => { clearTimeout(timer); worker.terminate(); messages.push([{}, words]); resolve(messages); };
    const wait = (seconds) => { clearTimeout(timer); timer = setTimeout(() => end("!timed out"), 1000 * seconds); };
    worker.onerror = worker.onmessageerror = (event) => { event.preventDefault?.(); end("!" + event.message); };
    worker.onmessage = ({data}) => {
        if (data[1].startsWith("!")) { end(data[1]); return; }
        messages.push(data);
        if (data[1]) { clearTimeout(timer); resolve(messages); } else { wait(caseSeconds); }
    };
    wait(startSeconds);
    worker.postMessage(message);
})
"""  # noqa: E501
_idle: list[Any] = []  # workers that have no job


def can_wait() -> bool:
    """Return True if this call of Python may wait for a worker. In a callback that the browser
    calls directly it may not."""
    js, ffi = importlib.import_module("js"), importlib.import_module("pyodide.ffi")
    return hasattr(js, "Worker") and ffi.can_run_sync()


def warm(kind: ServerKind) -> None:
    """Start a worker if none is idle, and make it prepare the machine of this kind. This call does
    not wait."""
    if not _idle:
        _idle.append(_start_worker())
    _idle[0].postMessage(_to_js([{}, json.dumps({"kind": kind.to_json()})]))


def run(
    kind: ServerKind, job: Mapping[str, Any], inputs: Mapping[str, bytes], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """Do the job in a worker, with the arguments and the result of
    :func:`course_lib.sandbox.in_process.run`.

    Raises: EnvironmentFault if no worker starts.
    """
    ffi, code = importlib.import_module("pyodide.ffi"), importlib.import_module("pyodide.code")
    worker = _idle.pop() if _idle else _start_worker()
    question = {"kind": kind.to_json(), "job": job, "limits": limits}
    message = _to_js([dict(inputs), json.dumps(question)])
    promise = code.run_js(_ASK)(worker, message, _START_SECONDS, limits["case"] + _GRACE_SECONDS)
    messages = ffi.run_sync(promise).to_py()
    outputs = {name: bytes(data) for new, _ in messages for name, data in new.items()}
    answer = messages[-1][1]
    if answer.startswith("!"):
        _idle.append(_start_worker())
        if len(messages) == 1:
            raise EnvironmentFault(
                f"the browser's second Python, which runs your code, did not start ({answer[1:]})."
                " Reload the page."
            )
        if answer.startswith("!PythonError"):
            # an error of the course itself: an exception of a submission would be a part of the
            # answer
            raise RuntimeError(answer[1:])
        # the first message says that the job begins, each other one that a case does
        return _describe_end(answer[1:], has_begun=len(messages) > 2) | {"outputs": outputs}
    _idle.append(worker)
    plain = json.loads(answer)
    return plain | {
        "stage": Stage(plain["stage"]),
        "left_out": frozenset(plain["left_out"]),
        "outputs": outputs,
    }


def answer(inputs: Any, question: str, post: Any) -> None:
    """Do the job of a message; called in the worker. ``post(outputs, answer)`` sends what is new
    when a case begins and at the end."""
    plain = json.loads(question)
    kind = ServerKind.from_json(plain["kind"])
    if "job" not in plain:
        in_process.make_machine(kind)
        return
    post(_to_js({}), "")  # the time limit of the job begins here
    done = in_process.run(
        kind,
        plain["job"],
        inputs.to_py(),
        plain["limits"],
        lambda outputs: post(_to_js(outputs), ""),
    )
    outputs = done.pop("outputs")
    post(_to_js(outputs), json.dumps(done | {"left_out": sorted(done["left_out"])}))


def _describe_end(words: str, has_begun: bool) -> dict[str, Any]:
    """Return the answer for a job whose worker was ended or crashed."""
    timed_out = words == "timed out"
    return {
        "tier": in_process.TIER, "ended": words if timed_out else "finished",
        "stage": Stage.RUNNING if has_begun else Stage.IMPORTING,
        "exit_code": None if timed_out else 1, "printed": "" if timed_out else words,
        "refusals": {}, "left_out": frozenset(),
    }  # fmt: skip


def _start_worker() -> Any:
    js, pyodide = importlib.import_module("js"), importlib.import_module("pyodide_js")
    script = f"const PYODIDE = {json.dumps(pyodide._api.config.indexURL)};{_WORKER}"
    parts = _to_js([script])
    return js.Worker.new(
        js.URL.createObjectURL(js.Blob.new(parts, _to_js({"type": "text/javascript"})))
    )


def _to_js(plain: Any) -> Any:
    js, ffi = importlib.import_module("js"), importlib.import_module("pyodide.ffi")
    return ffi.to_js(plain, dict_converter=js.Object.fromEntries)
