"""A broken environment or a bad setting is said in words, is nobody's verdict, and leaves progress
as it was."""

from __future__ import annotations

import errno
import html
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from course_lib import catalog, exercise
from course_lib.base import paths, runtime, worker
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import environment_fault
from course_lib.catalog import texts
from course_lib.cli import app
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.learner import progress
from course_lib.sandbox import servers

COPY, NORM, STATISTICS = catalog.get("00a"), catalog.get("01a"), catalog.get("03a")
SITE = Path(f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages")
PACKAGES = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
needs_no_gpu = pytest.mark.skipif(runtime.gpu_name() is not None, reason="this machine has a GPU")


@pytest.fixture(autouse=True)
def learner(own_exercises):
    """Solved files, and no progress."""
    own_exercises.mkdir()
    for solved in (COPY, NORM, STATISTICS):
        texts.find_file(solved).write_text(texts.read_solution(solved))


@pytest.fixture
def python(tmp_path):
    """A Python whose installed packages can be spoiled: ``python(broken="torch")``,
    ``python(missing="triton")``."""

    def make(broken: str = "", missing: str = "") -> Path:
        folder = tmp_path / "environment"
        venv.create(folder, symlinks=True, with_pip=False)
        site = folder / SITE
        for entry in PACKAGES.iterdir():
            if (
                entry.name.split(".")[0] not in (broken, missing, "__editable__")
                and not (site / entry.name).exists()
            ):
                (site / entry.name).symlink_to(entry)
        (site / "course.pth").write_text(f"{paths.ROOT}\n")
        if broken:
            (site / f"{broken}.py").write_text(
                "x = 1\nraise RuntimeError('libfoo.so.1: cannot open shared object file\\nmore"
                " words')\n"
            )
        return folder / "bin" / "python"

    return make


def course(
    *arguments: str, python: Path | str = sys.executable, **settings: str
) -> subprocess.CompletedProcess:
    """The real command, as a process of its own."""
    environment = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("COURSE_D", "TRITON_", "PYTHONPATH"))
    } | settings
    command = [str(python), str(paths.ROOT / "course_command.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, timeout=250
    )


def assert_one_message(done: subprocess.CompletedProcess, *says: str) -> None:
    assert (done.returncode, done.stdout) == (app.BROKEN_ENVIRONMENT, ""), done.stdout + done.stderr
    assert (
        done.stderr.startswith("course: ")
        and done.stderr.count("\n") == 1
        and "Traceback" not in done.stderr
    ), done.stderr
    assert all(words in done.stderr for words in says), done.stderr
    assert progress.read() == {}, "it counts as no check"


# ---- settings ------------------------------------------------------------------------------------


@needs_no_gpu
def test_a_gpu_that_is_asked_for_and_is_not_there():
    assert_one_message(
        course("check", "00a", COURSE_DEVICE="gpu"),
        "00a was not checked",
        "`unset COURSE_DEVICE`",
        "`course doctor`",
    )


def test_a_device_that_does_not_exist():
    assert_one_message(
        course("check", "00a", COURSE_DEVICE="nonsense"),
        "COURSE_DEVICE is 'nonsense'",
        "`unset COURSE_DEVICE`",
    )


def test_json_says_nothing_where_there_is_no_verdict():
    assert_one_message(
        course("check", "00a", "--json", COURSE_DEVICE="nonsense"), "COURSE_DEVICE is 'nonsense'"
    )


# ---- packages ------------------------------------------------------------------------------------

REMEDY = ("`make clean`, then `make lab`", "`course doctor`")
SPOILED = {
    "Triton is missing": ("00a", {"missing": "triton"}, "Triton is not installed"),
    "Triton is broken": (
        "00a",
        {"broken": "triton"},
        "Triton cannot be imported: RuntimeError: libfoo.so.1: cannot open shared object file (",
    ),
    "PyTorch is missing": ("01a", {"missing": "torch"}, "PyTorch is not installed"),
    "PyTorch is broken": (
        "01a",
        {"broken": "torch"},
        "PyTorch cannot be imported: RuntimeError: libfoo.so.1: cannot open shared object file (",
    ),
}


@pytest.mark.skipif(
    runtime.gpu_name() is not None, reason="there the course itself imports PyTorch"
)
@pytest.mark.parametrize(("name", "how", "says"), SPOILED.values(), ids=SPOILED)
def test_a_package_that_cannot_be_imported(python, name, how, says):
    assert_one_message(
        course("check", name, python=python(**how)), f"{name} was not checked: {says}", *REMEDY
    )


CHECK = """
import os
os.environ["COURSE_DEFER_CHOICE"] = "1"
from course_lib import catalog
from course_lib.base.errors import EnvironmentFault
from course_lib.grading.check import check
try:
    check(catalog.get("03a"))
except EnvironmentFault as fault:
    print(fault)
"""


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"missing": "numpy"}, "NumPy is not installed"),
        ({"broken": "numpy"}, "NumPy cannot be imported: RuntimeError"),
        ({"missing": "ml_dtypes"}, "ml_dtypes is not installed"),
    ],
)
def test_numpy_that_cannot_be_imported(python, how, says):
    done = subprocess.run([python(**how), "-c", CHECK], capture_output=True, text=True, timeout=250)
    assert (
        done.stdout.startswith(f"03a was not checked: {says}")
        and done.stderr == ""
        and all(words in done.stdout for words in REMEDY)
    )


@pytest.mark.parametrize(
    ("package", "called"), [("numpy", "NumPy"), ("torch", "PyTorch"), ("triton", "Triton")]
)
def test_a_module_that_stands_before_the_courses_own_is_named(tmp_path, package, called):
    """What PYTHONPATH puts first. The grader's processes do not see it; what the course imports
    itself does."""
    (tmp_path / f"{package}.py").write_text("raise RuntimeError('mine')\n")
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from course_lib.base.installation import environment_fault
try:
    import {package}
except Exception as error:
    print(environment_fault(error))
"""
    environment = {**os.environ, "COURSE_DEFER_CHOICE": "1"}
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=250, env=environment
    ).stdout
    assert said.startswith(
        f"{called} cannot be imported: RuntimeError: mine ({tmp_path / package}.py, line 1)"
    )
    assert (
        f"That is not the {package} that the course installed" in said
        and "`unset PYTHONPATH`" in said
    )


@pytest.mark.parametrize(
    "content", ["x = 1\n", "raise RuntimeError('mine')\n", "import sys\nsys.exit(5)\n"]
)
@pytest.mark.parametrize(
    "name", ["numpy", "random", "typing", "typer", "rich", "json", "ml_dtypes"]
)
def test_a_script_that_bears_a_modules_name_is_named_and_no_traceback_shown(
    tmp_path, name, content
):
    """Without what the course looks for, with an exception, and as a program that ends."""
    script = tmp_path / f"{name}.py"
    script.write_text(content)
    bare = subprocess.run(
        [sys.executable, "-c", ""], env=os.environ | {"PYTHONPATH": str(tmp_path)}, timeout=250
    )
    if bare.returncode:
        pytest.skip(
            f"on this machine another package's .pth file imports {name}, and Python ends before"
            " the course begins"
        )
    done = course("check", "03a", PYTHONPATH=str(tmp_path))
    # other packages' .pth files run before the course: Python itself shows the tracebacks of
    # theirs, and goes on
    of_the_course = re.sub(
        r"Error processing line .*?Remainder of file ignored\n", "", done.stderr, flags=re.DOTALL
    )
    assert (done.returncode, done.stdout) == (
        app.BROKEN_ENVIRONMENT,
        "",
    ) and "Traceback" not in of_the_course
    said = done.stderr.splitlines()[-1]  # NumPy's own C code has a line of its own before it
    assert (
        said.startswith("course: ")
        and f"Rename or remove {script}" in said
        and "`unset PYTHONPATH`" in said
    )
    assert f"That is not the {name} that" in said and progress.read() == {}


def test_a_module_of_ones_own_is_no_fault_while_nothing_fails(tmp_path):
    (tmp_path / "token2.py").write_text("x = 1\n")
    (tmp_path / "statistics.py").write_text("mean = None\n")
    assert course("check", "03a", PYTHONPATH=str(tmp_path)).returncode == 0


def test_a_broken_torch_before_the_courses_own_on_a_machine_with_a_gpu(tmp_path):
    (tmp_path / "torch.py").write_text("import no_such_library\n")
    script = (
        "from course_lib.base import runtime\nruntime._DEVICE_FILES = ('/dev/null',)\nfrom"
        " course_lib.cli.app import run\nimport sys\nsys.exit(run(['check', '00a']))"
    )
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("COURSE_DEVICE", "TRITON_"))
    }
    environment |= {"COURSE_DEFER_CHOICE": "1", "PYTHONPATH": f"{tmp_path}:{paths.ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        timeout=250,
    )
    assert_one_message(
        done,
        "PyTorch cannot be imported: ModuleNotFoundError: No module named 'no_such_library'",
        "`unset PYTHONPATH`",
    )


def test_a_command_that_cannot_import_what_it_needs(tmp_path, monkeypatch, capsys):
    (tmp_path / "spoiled.py").write_text("raise RuntimeError('mine')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalog, "get", lambda name: __import__("spoiled"))
    assert app.run(["hint", "00a"]) == app.BROKEN_ENVIRONMENT
    printed, said = capsys.readouterr()
    assert (
        printed == ""
        and said.startswith("course: spoiled cannot be imported: RuntimeError: mine (")
        and said.count("\n") == 1
    )


def test_a_learner_who_imports_what_is_not_there_is_still_told_so(tmp_path):
    texts.find_file(COPY).write_text("import numpyy\n" + texts.read_solution(COPY))
    verdict = check(COPY)
    assert (verdict.status, verdict.cause) == ("error", "import_fails")


# ---- the machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "Free some space"), (errno.EDQUOT, "quota"), (errno.EROFS, "TMPDIR"),
        (errno.EACCES, "TMPDIR"),
        (errno.EPERM, "`course doctor`"), (errno.ENOMEM, "memory"), (errno.EAGAIN, "ulimit -u"),
        (errno.EMFILE, "ulimit -n"), (errno.ENFILE, "end some programs"),
    ],
)  # fmt: skip
def test_what_the_machine_refuses_has_its_remedy(monkeypatch, number, says):
    def refuse(*arguments, **named):
        raise OSError(number, os.strerror(number), "/tmp/somewhere")

    servers.stop_all()
    monkeypatch.setattr(worker.subprocess, "Popen", refuse)
    with pytest.raises(
        EnvironmentFault,
        match=(
            f"03a was not checked: .*{re.escape(os.strerror(number))}:"
            f" /tmp/somewhere.*{re.escape(says)}"
        ),
    ):
        check(STATISTICS)


def test_too_little_memory_is_the_machines(monkeypatch):
    def refuse(*arguments):
        raise MemoryError

    monkeypatch.setattr(runner, "run", refuse)
    with pytest.raises(EnvironmentFault, match="not enough memory"):
        check(STATISTICS)


def test_a_file_of_the_course_that_is_not_there_is_a_bug(monkeypatch):
    def refuse(*arguments):
        raise FileNotFoundError(errno.ENOENT, "No such file", "server.py")

    monkeypatch.setattr(runner, "run", refuse)
    assert check(STATISTICS).status == "grader fault"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("ours"),
        ImportError("cannot import name 'x'"),
        ModuleNotFoundError("no", name="course_lib.gone"),
    ],
)
def test_a_bug_of_the_course_is_not_the_environments(error):
    assert environment_fault(error) is None
    try:
        raise error
    except Exception as raised:
        assert environment_fault(raised) is None


def test_a_bug_of_the_course_is_no_check(monkeypatch, capsys):
    monkeypatch.setattr(runner, "run", lambda *rest: 1 / 0)
    assert app.run(["check", "03a"]) == 4
    printed, said = capsys.readouterr()
    assert "Traceback" not in printed + said and ".course/faults/03a.txt" in " ".join(
        printed.split()
    )
    assert progress.read() == {}


# ---- the panel -----------------------------------------------------------------------------------


def words(widget) -> str:
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", widget.value))


def test_the_panel_says_it_and_keeps_what_it_showed(monkeypatch):
    panel = exercise("03a")
    panel._buttons["Check"].click()
    assert "pass" in words(panel._result), words(panel._extra)
    before = progress.file().read_bytes()

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(runner, "run", refuse)
    panel._buttons["Check"].click()
    assert "03a was not checked: this machine says: No space left on device." in words(panel._extra)
    assert "Nothing of yours was changed." in words(panel._extra)
    assert "checking" not in words(panel._result) and "pass" in words(panel._result), (
        "no sign goes on turning"
    )
    assert progress.file().read_bytes() == before


def test_an_environment_fault_is_a_course_error():
    assert issubclass(EnvironmentFault, CourseError) and app.BROKEN_ENVIRONMENT == 78
    assert environment_fault(EnvironmentFault("as it is")).args == ("as it is",)
