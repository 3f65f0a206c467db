"""The choice between GPU and interpreter: who asked for what, what is there, and what came too
early."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import types

import pytest

from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError


@pytest.fixture(autouse=True)
def undecided(monkeypatch):
    """A process that has chosen nothing, with no GPU and no Triton, whatever this machine has."""
    monkeypatch.setattr(runtime, "_chosen", None)
    monkeypatch.setattr(runtime, "_set_here", set(), raising=False)
    monkeypatch.setattr(runtime, "gpu_name", lambda: None)
    monkeypatch.setattr(runtime, "triton_imported_as", lambda: None)
    # set first, so that what the choice writes is undone even where the variable was not there
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setenv("COURSE_DEVICE", "")


def chosen() -> tuple[str, str, str | None]:
    found = runtime.current()
    return found.mode, found.why, os.environ.get("TRITON_INTERPRET")


def test_without_a_gpu_it_is_the_interpreter():
    assert chosen() == ("cpu", "no GPU found", "1")
    assert runtime.current().device == "cpu" and runtime.current().interpreted
    assert (
        "CPU mode (no GPU found)" in runtime.current().line() and "slow" in runtime.current().line()
    )


def test_with_a_gpu_it_is_the_gpu(monkeypatch):
    monkeypatch.setattr(runtime, "gpu_name", lambda: "Some GPU")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    assert chosen() == ("gpu", "found a GPU", None)
    assert runtime.current().device == "cuda" and "Some GPU" in runtime.current().line()


@pytest.mark.parametrize("spelled", ["cpu", "CPU", " cpu "])
def test_course_device_asks_for_the_interpreter(monkeypatch, spelled):
    monkeypatch.setattr(runtime, "gpu_name", lambda: "Some GPU")
    monkeypatch.setenv("COURSE_DEVICE", spelled)
    assert chosen() == ("cpu", "COURSE_DEVICE=cpu", "1")


@pytest.mark.parametrize(
    ("value", "mode"), [("1", "cpu"), ("true", "cpu"), ("ON", "cpu"), ("0", "gpu"), ("", "gpu")]
)
def test_triton_interpret_is_heard_as_triton_hears_it(monkeypatch, value, mode):
    monkeypatch.setattr(runtime, "gpu_name", lambda: "Some GPU")
    monkeypatch.setenv("TRITON_INTERPRET", value)
    assert chosen()[0] == mode


def test_course_device_comes_before_triton_interpret(monkeypatch):
    monkeypatch.setattr(runtime, "gpu_name", lambda: "Some GPU")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("COURSE_DEVICE", "gpu")
    assert chosen() == ("gpu", "COURSE_DEVICE=gpu", None)


@pytest.mark.parametrize(
    ("value", "says"), [("gpu", "course doctor"), ("tpu", "'cpu', 'gpu' or unset")]
)
def test_a_wish_that_cannot_be_met_says_what_to_do(monkeypatch, value, says):
    monkeypatch.setenv("COURSE_DEVICE", value)
    with pytest.raises(CourseError, match=says):
        runtime.current()
    monkeypatch.setenv("COURSE_DEVICE", "")
    assert runtime.current().mode == "cpu"  # nothing was fixed by the failure


@pytest.mark.parametrize(("system", "called"), [("Darwin", "macOS"), ("Windows", "Windows")])
def test_systems_without_triton_are_told_where_it_runs(monkeypatch, system, called):
    monkeypatch.setattr(platform, "system", lambda: system)
    with pytest.raises(CourseError, match=f"no Triton \\({called}\\).*WSL.*docs/setup.md"):
        runtime.current()


@pytest.mark.parametrize(
    ("early", "gpu", "remedy"), [("gpu", None, "the interpreter"), ("cpu", "Some GPU", "the GPU")]
)
def test_a_triton_that_came_first_the_other_way_is_refused(monkeypatch, early, gpu, remedy):
    monkeypatch.setattr(runtime, "gpu_name", lambda: gpu)
    monkeypatch.setattr(runtime, "triton_imported_as", lambda: early)
    with pytest.raises(CourseError, match=f"needs {remedy}. Restart the kernel"):
        runtime.current()


def test_a_triton_that_came_first_the_right_way_is_fine(monkeypatch):
    monkeypatch.setattr(runtime, "triton_imported_as", lambda: "cpu")
    assert runtime.current().mode == "cpu"


def test_the_choice_is_made_once(monkeypatch):
    first = runtime.current()
    monkeypatch.setattr(runtime, "gpu_name", lambda: "plugged in later")
    assert runtime.current() is first


def test_without_a_device_file_pytorch_is_not_asked(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(runtime, "_DEVICE_FILES", ("/dev/no-such-device",))
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it would raise
    assert runtime.gpu_name() is None


@pytest.mark.parametrize(
    ("shell", "is_notebook"),
    [(types.SimpleNamespace(kernel=1), True), (types.SimpleNamespace(), False), (None, False)],
)
def test_a_notebook_is_a_kernel_and_not_a_terminal(monkeypatch, shell, is_notebook):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert runtime.in_notebook() is is_notebook


# ---- in processes of their own: imports cannot be undone -----------------------------------------


def python(script: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("COURSE_", "TRITON_"))
    }
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=clean | {"PYTHONPATH": str(paths.ROOT), "COURSE_DEVICE": "cpu"} | environment,
        timeout=250,
    )


def test_triton_imported_before_the_course_is_an_error_with_its_remedy():
    done = python("import triton\nimport course_lib")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "CourseError: Triton was imported before course_lib" in last
    assert "Restart the kernel" in last and "`import course_lib` before" in last


def test_the_course_imported_first_gives_interpreted_functions():
    done = python(
        "import course_lib, sys\nassert 'triton' not in sys.modules or course_lib.MODE =="
        " 'cpu'\nimport triton, triton.language as tl\n@triton.jit\ndef k(x):\n   "
        " pass\nprint(type(k).__name__, type(tl.standard.sum).__name__, course_lib.MODE,"
        " course_lib.DEVICE)"
    )
    assert done.stdout == "InterpretedFunction InterpretedFunction cpu cpu\n", done.stderr


def test_the_choice_can_be_put_off_until_it_is_asked_for():
    done = python(
        "import os, course_lib\nfrom course_lib import catalog; from course_lib.base import"
        " runtime\nassert runtime._chosen is None and 'COURSE_DEFER_CHOICE' not in"
        " os.environ\nprint(course_lib.MODE, course_lib.DEVICE, runtime._chosen.mode,"
        " os.environ['TRITON_INTERPRET'])",
        COURSE_DEFER_CHOICE="1",
    )
    assert done.stdout == "cpu cpu cpu 1\n", done.stderr


@pytest.mark.parametrize(
    ("asked", "fused"), [({}, True), ({"TRITON_DEFAULT_FP_FUSION": "0"}, False)]
)
def test_multiply_and_add_are_fused_whatever_triton_does_by_default(asked, fused):
    done = python(
        "import course_lib\nfrom triton import"
        " knobs\nvars(type(knobs.language))['default_fp_fusion'].default = False\nfrom"
        " triton.backends.compiler import GPUTarget\nfrom triton.compiler import"
        " make_backend\nprint(make_backend(GPUTarget('cuda', 90,"
        " 32)).parse_options({}).enable_fp_fusion)",
        COURSE_DEFER_CHOICE="1",  # as in the process that compiles
        **asked,
    )
    assert done.stdout == f"{fused}\n", done.stderr


def test_a_notebook_is_told_the_mode_once_and_a_script_is_not():
    fake = (
        "import sys, types\nsys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda:"
        " types.SimpleNamespace(kernel=1))\n"
    )
    assert python("import course_lib").stdout == ""
    told = python(fake + "import course_lib\nimport course_lib").stdout
    assert told.count("\n") == 1 and told.startswith("course: CPU mode (COURSE_DEVICE=cpu)")
