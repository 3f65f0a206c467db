"""Trials of what may crash, hang or be missing (PyTorch, Triton, a GPU's driver), each in a
separate process."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from course_lib.base import paths
from course_lib.base.translation import gettext as _
from course_lib.base.worker import Worker, WorkerCommand, WorkerDied, WorkerTimeout

PROBE = """
import json, warnings
def say(**facts): print(json.dumps(facts), flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
    say(torch=torch.__version__, cuda=torch.version.cuda, hip=getattr(torch.version, "hip", None))
    import triton
    say(triton=triton.__version__)
    available = torch.cuda.is_available()
say(available=available, warning=next((str(w.message).splitlines()[0] for w in caught if "CUDA" in str(w.message)), ""))
if available:
    say(name=torch.cuda.get_device_name(0), capability=torch.cuda.get_device_capability(0))
    free, total = torch.cuda.mem_get_info()
    say(gpu_free=free, gpu_total=total)
"""  # noqa: E501

CANARY = """
import json
import course_lib
from course_lib.base.errors import CourseError
try:
    course_lib.MODE
except CourseError as error:
    print(json.dumps({"refused": str(error)}), flush=True)
else:
    from course_lib.doctor import canary
    print(json.dumps(canary.run()), flush=True)
"""

COMPILER = """
import json
from course_lib import compiler
from course_lib.base.errors import EnvironmentFault
try:
    compiler.warm()
    print(json.dumps({"compiled": True}), flush=True)
except EnvironmentFault as fault:
    print(json.dumps({"refused": str(fault)}), flush=True)
"""

CONFINEMENT = f"""
import runpy, sys
sys.argv = ["server.py", {str(paths.ROOT)!r}, "probe"]
runpy.run_path({str(paths.ROOT / "course_lib" / "sandbox" / "server.py")!r}, run_name="__main__")
"""


class Trial:
    """A script in a separate process, which starts at once; ``report()`` waits for it."""

    def __init__(self, code: str, seconds: float) -> None:
        self.seconds = seconds
        self.errors = ""  # the end of the script's stderr, set when it has ended
        self._facts: dict[str, Any] | None = None
        self._worker = Worker(lambda: _launch(code))
        self._worker.start()

    @property
    def pid(self) -> int | None:
        """The id of the script's process and of its group; None once it has ended."""
        return self._worker.pid

    def report(self) -> dict[str, Any]:
        """Return the JSON objects that the script printed, one per line, merged. ``crash`` says in
        words how it failed, if it did."""
        if self._facts is None:
            self._facts = self._collect()
        return self._facts

    def stop(self) -> None:
        """Kill the script and every process that it started."""
        self._worker.end()

    def _collect(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        deadline = time.monotonic() + self.seconds
        try:
            while True:
                line = self._worker.read_line(deadline - time.monotonic())
                if line.startswith(b"{"):
                    facts.update(json.loads(line))
        except WorkerTimeout as late:
            self.errors = late.printed
            facts["crash"] = _("no answer within {seconds:g} s").format(seconds=self.seconds)
        except WorkerDied as died:
            self.errors = died.printed
            if died.code is None or died.code < 0:
                facts["crash"] = _("its process {died}").format(died=died)
            elif died.code > 0:
                facts["crash"] = died.last_line or _("its process {died}").format(died=died)
        return facts


def _launch(code: str) -> WorkerCommand:
    path = os.pathsep.join([str(paths.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return WorkerCommand(
        [sys.executable, "-c", code],
        {**os.environ, "PYTHONPATH": path, "COURSE_DEFER_CHOICE": "1"},
        cwd=None,
    )
