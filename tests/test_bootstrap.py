"""The set-up, with a stand-in for pip: no test here fetches or installs anything.

The stand-in is the ``.venv/bin/python`` that a patched ``create_venv`` writes. It notes every call, says what the test
wants pip to say, and passes everything else on to the Python that runs the tests.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BOOTSTRAP = ROOT / "tools" / "bootstrap.py"

STAND_IN = """#!/bin/sh
sleeps=$(cat "{root}/sleeps")
echo "$*" >> "{root}/calls"
case "$*" in
  *"-m pip"*install*) cat "{root}/says"; sleep "$sleeps"; exit "$(cat "{root}/code")" ;;
  *"pip config list"*) cat "{root}/settings" ;;
  *"import json, torch, triton"*) cat "{root}/versions" ;;
  *) exec "{python}" "$@" ;;
esac
"""

DRIVER = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("bootstrap", sys.argv[1])
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)
def create_venv(venv):
    os.makedirs(os.path.join(venv, "bin"))
    path = os.path.join(venv, "bin", "python")
    with open(path, "w") as file:
        file.write(sys.argv[2])
    os.chmod(path, 0o755)
bootstrap.create_venv = create_venv
bootstrap.free_space = lambda root: 100 * bootstrap.GB
sys.exit(bootstrap.main(sys.argv[3:]))
"""


class Checkout:
    """A copy of the set-up in a folder of its own, with the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True)
        shutil.copy(BOOTSTRAP, root / "tools" / "bootstrap.py")
        (root / "pyproject.toml").write_text('[project]\nname = "tiny"\n')
        (root / "constraints.txt").write_text("torch==2.13.0\ntriton==3.7.1\n")
        self.set(says="", code="0", sleeps="0", settings="", versions='["2.13.0+cpu", "3.7.1"]\n')

    def set(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / name).write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        stand_in = STAND_IN.format(root=self.root, python=sys.executable)
        command = [sys.executable, "-c", DRIVER, str(self.root / "tools" / "bootstrap.py"), stand_in, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def installs(self) -> int:
        calls = self.root / "calls"
        return calls.read_text().count(" install ") if calls.exists() else 0

    def wait_for_pip(self) -> None:
        deadline = time.monotonic() + 30
        while self.installs() == 0:
            assert time.monotonic() < deadline, "pip was never started"
            time.sleep(0.02)

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".course-stamp"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "course")


@pytest.fixture
def bootstrap():
    """The module itself, loaded afresh."""
    spec = importlib.util.spec_from_file_location("bootstrap", BOOTSTRAP)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what a person sees ------------------------------------------------------------------------------------------------


def test_first_run_installs_and_the_second_is_ready_at_once(checkout: Checkout) -> None:
    code, output = checkout.run()
    assert code == 0, output
    assert "making an environment" in output and "on disk" in output and "environment is ready" in output
    assert checkout.installs() == 2  # setuptools, then the course
    started = time.monotonic()
    code, output = checkout.run()
    assert time.monotonic() - started < 1
    assert (code, output.count("\n")) == (0, 1) and "environment is ready" in output
    assert checkout.installs() == 2


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_pins_update_the_environment_in_place(checkout: Checkout, name: str) -> None:
    checkout.run()
    (checkout.root / ".venv" / "kept").touch()
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    code, output = checkout.run()
    assert code == 0 and "bringing the packages" in output
    assert checkout.installs() == 4 and (checkout.root / ".venv" / "kept").exists()


def test_pip_that_fails_leaves_no_stamp_and_the_next_run_starts_afresh(checkout: Checkout) -> None:
    checkout.set(code="1", says="ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n")
    code, output = checkout.run()
    assert code == 1 and "Errno 28" in output, "pip's own words are shown"
    assert "the disk is full" in output
    assert not checkout.stamp.exists()
    (checkout.root / ".venv" / "half").touch()
    checkout.set(code="0", says="")
    code, output = checkout.run()
    assert code == 0 and "did not finish" in output and "environment is ready" in output
    assert not (checkout.root / ".venv" / "half").exists()


def test_killed_half_way_the_next_run_waits_for_the_orphaned_pip_and_repairs(checkout: Checkout) -> None:
    checkout.set(sleeps="1.5")
    first = checkout.start()
    checkout.wait_for_pip()
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not checkout.stamp.exists()
    checkout.set(sleeps="0")
    code, output = checkout.run()
    assert code == 0, output
    assert "another set-up is at work" in output and "did not finish" in output and "environment is ready" in output
    first.communicate()


def test_two_at_once_install_once(checkout: Checkout) -> None:
    checkout.set(sleeps="0.3")
    first = checkout.start()
    checkout.wait_for_pip()
    code, output = checkout.run()
    first_output, _ = first.communicate(timeout=60)
    assert (first.returncode, code) == (0, 0), first_output + output
    assert "another set-up is at work" in output and "environment is ready" in output
    assert checkout.installs() == 2


def test_ctrl_c_ends_pip_and_says_so(checkout: Checkout) -> None:
    checkout.set(sleeps="12")
    process = checkout.start()
    checkout.wait_for_pip()
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert time.monotonic() - started < 10
    assert not checkout.stamp.exists()
    process.stdout.close()


def test_wrong_version_after_the_install_is_no_success(checkout: Checkout) -> None:
    checkout.set(versions='["2.12.0", "3.7.1"]\n')
    code, output = checkout.run()
    assert code == 1 and "torch 2.12.0 was installed, but 2.13.0 is pinned" in output
    assert not checkout.stamp.exists()


def test_a_copied_checkout_gets_an_environment_of_its_own(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    copy = tmp_path / "copy"
    shutil.copytree(checkout.root, copy, symlinks=True)
    twin = object.__new__(Checkout)
    twin.root = copy
    code, output = twin.run()
    assert code == 0 and "made in another folder" in output
    assert json.loads(twin.stamp.read_text())["place"] == str(copy / ".venv")


def test_a_link_to_a_larger_disk_stays_a_link(checkout: Checkout, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.mkdir()
    (checkout.root / ".venv").symlink_to(large)
    checkout.set(code="1", says="no reason\n")
    assert checkout.run()[0] == 1
    checkout.set(code="0")
    code, output = checkout.run()
    assert code == 0, output
    assert (checkout.root / ".venv").is_symlink() and (large / ".course-stamp").exists()


def test_a_venv_of_somebody_else_is_not_deleted(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    (checkout.root / ".venv" / "precious").write_text("mine")
    code, output = checkout.run()
    assert code == 1 and "the course did not make" in output and "mv .venv" in output
    assert (checkout.root / ".venv" / "precious").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(checkout: Checkout) -> None:
    (checkout.root / ".venv.lock").mkdir()
    code, output = checkout.run()
    assert code == 1 and "cannot be written" in output and "folder of your own" in output


def test_no_network_is_recognised_with_the_real_pip(tmp_path: Path) -> None:
    """The one test with a real environment: pip against a port where nobody listens, and .venv a link to another disk."""
    checkout = Checkout(tmp_path / "course")
    (tmp_path / "large").mkdir()
    (checkout.root / ".venv").symlink_to(tmp_path / "large")
    with (checkout.root / "constraints.txt").open("a") as file:
        file.write("setuptools==84.2.1\n")
    done = subprocess.run(
        [sys.executable, checkout.root / "tools" / "bootstrap.py"], capture_output=True, text=True, timeout=120, env=_nowhere(tmp_path)
    )
    assert done.returncode == 1
    assert "could not reach the package index" in done.stderr
    assert "127.0.0.1:9" in done.stderr and "secret" not in done.stderr


def _nowhere(tmp_path: Path) -> dict[str, str]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {
        **keep,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://me:secret@127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
        "HOME": str(tmp_path),
    }


# ---- which Python --------------------------------------------------------------------------------------------------------


def test_old_python_can_read_the_script() -> None:
    tree = ast.parse(BOOTSTRAP.read_text(), feature_version=(3, 6))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)], "`from __future__ import annotations` is 3.7"
    known = "argparse ensurepip errno fcntl glob hashlib json os platform pty re shutil signal struct subprocess sys termios time venv"
    assert imported <= set(known.split(" "))


def test_old_python_hands_over_to_a_better_one(bootstrap, monkeypatch, tmp_path: Path, capsys) -> None:
    better = tmp_path / "python3.12"
    better.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    better.chmod(0o755)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "python3.12").write_text("#!/bin/sh\nexit 127\n")  # what a shim without its version does
    (tmp_path / "bad" / "python3.12").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bad'}:{tmp_path}")
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    started: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        started.append(arguments)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        bootstrap.check_python(False, ["--flag"])
    assert started == [[str(better), str(BOOTSTRAP), "--flag"]]
    assert "too old" in capsys.readouterr().out
    with pytest.raises(bootstrap.Stop, match=r"Python 3\.9\.18.*(?s:.*)PYTHON=python3\.12"):
        bootstrap.check_python(True, [])  # named by the person: no other in its place


def test_old_python_alone_says_what_to_install(bootstrap, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    with pytest.raises(bootstrap.Stop, match=r"3\.11 or newer(?s:.*)apt install(?s:.*)PYTHON=python3\.12"):
        bootstrap.check_python(False, [])


def test_newer_than_tested_is_a_warning(bootstrap, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    bootstrap.check_python(False, [])
    assert "newer than the course was tested with" in capsys.readouterr().out


def test_debian_without_the_venv_package(bootstrap, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(bootstrap.Stop, match=r"apt install python3\.\d+-venv"):
        bootstrap.check_python(False, [])


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ({"system": "Darwin"}, "macOS.*Other systems"),
        ({"system": "Windows"}, "Windows.*WSL"),
        ({"machine": "riscv64"}, "riscv64.*x86_64 and aarch64"),
        ({"libc_ver": ("", "")}, "glibc"),
        ({"libc_ver": ("glibc", "2.17")}, r"2\.17.*2\.28"),
    ],
)
def test_systems_without_wheels(bootstrap, monkeypatch, patch: dict, says: str) -> None:
    good = {"system": "Linux", "machine": "aarch64", "libc_ver": ("glibc", "2.41")}
    for name, value in {**good, **patch}.items():
        monkeypatch.setattr(bootstrap.platform, name, lambda value=value: value)
    with pytest.raises(bootstrap.Stop, match=says):
        bootstrap.check_platform()


# ---- how much, and is there room -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "machine", "build"),
    [
        ({}, "x86_64", "cuda"),
        ({"extra-index-url": "https://example.org/whl/cpu"}, "x86_64", "cpu"),
        ({"index-url": "https://example.org/whl/cpu/"}, "x86_64", "cpu"),
        ({"index-url": "https://mirror.example.org/simple"}, "x86_64", "unknown"),
        ({"extra-index-url": "https://example.org/cpuset"}, "x86_64", "cuda"),
        ({}, "aarch64", "unknown"),
    ],
)
def test_expected_build(bootstrap, monkeypatch, settings: dict, machine: str, build: str) -> None:
    monkeypatch.setattr(bootstrap.platform, "machine", lambda: machine)
    assert bootstrap.expected_build(settings, "2.13.0", "cp311") == build


def test_a_folder_with_the_cpu_wheel_is_looked_into(bootstrap, tmp_path: Path) -> None:
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux.whl").touch()
    assert bootstrap.expected_build({"find-links": str(tmp_path)}, "2.13.0", "cp311") == "cpu"
    assert bootstrap.expected_build({"find-links": f"file://{tmp_path}"}, "2.13.0", "cp311") == "cpu"
    assert bootstrap.expected_build({"find-links": str(tmp_path)}, "2.13.0", "cp312") != "cpu"


@pytest.mark.parametrize(
    ("free", "build", "stops", "warns"),
    [
        (1, "cpu", True, False),
        (1, "cuda", True, False),
        (1, "unknown", True, False),
        (5, "cpu", False, False),
        (5, "cuda", True, False),
        (5, "unknown", False, True),
        (20, "cuda", False, False),
    ],
)
def test_room_on_disk(bootstrap, monkeypatch, capsys, tmp_path: Path, free: int, build: str, stops: bool, warns: bool) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda path: usage._replace(free=free * 10**9))
    if stops:
        with pytest.raises(bootstrap.Stop, match=f"{free}\\.0 GB are free"):
            bootstrap.check_disk(str(tmp_path), build)
    else:
        bootstrap.check_disk(str(tmp_path), build)
    assert ("GB are free" in capsys.readouterr().out) == warns


# ---- why pip failed ------------------------------------------------------------------------------------------------------

CONFLICT = "ERROR: ResolutionImpossible: for help visit the manual"
REFUSED = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(... Failed to establish a new connection: {}')"


@pytest.mark.parametrize(
    ("output", "code", "settings", "says"),
    [
        (REFUSED.format("[Errno 111] Connection refused") + "\n" + CONFLICT, 1, {}, "could not reach the package index"),
        (REFUSED.format("[Errno -3] Temporary failure in name resolution"), 1, {}, "could not reach"),
        (REFUSED.format("[Errno 13] Permission denied"), 1, {}, "could not reach"),
        ("ReadTimeoutError: HTTPSConnectionPool(...): Read timed out.", 2, {}, "could not reach"),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", 1, {}, "certificate"),
        ("ERROR: 403 Client Error: Forbidden for url", 1, {}, "refused access"),
        (CONFLICT, 1, {"no-index": "1", "find-links": "/wheels"}, r"no package index.*/wheels"),
        (CONFLICT, 1, {}, "contradict each other"),
        ("ERROR: No matching distribution found for triton==3.7.1", 1, {}, r"finds no triton==3\.7\.1 for Python"),
        (REFUSED.format("broken pipe") + "\nOSError: [Errno 28] No space left on device", 1, {}, "disk is full"),
        ("ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/x'", 1, {}, "may not write"),
        ("", -9, {}, "memory ran out"),
        ("ERROR: Failed building wheel for ruff", 1, {}, "no ready-made build"),
        ("something new", 3, {}, r"exit code 3"),
    ],
)
def test_diagnosis(bootstrap, monkeypatch, output: str, code: int, settings: dict, says: str) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert re.search(says, bootstrap.diagnose(output, code, settings, "python"))


def test_progress_bars_count_as_one_line(bootstrap) -> None:
    shown = io.BytesIO()
    listener = bootstrap.Listener(shown)
    pieces = [b"Coll", b"ecting torch\r\n \x1b[32m10%", b"\r\x1b[32m100%\x1b[0m\nERR", b"OR"]
    for piece in pieces:
        listener.feed(piece)
    assert shown.getvalue() == b"".join(pieces), "shown as it came"
    assert listener.text() == "Collecting torch\n100%\nERROR"


@pytest.mark.parametrize("terminal", [True, False])
def test_pip_sees_a_terminal_where_there_is_one(bootstrap, monkeypatch, terminal: bool) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stdout", Out())
    code, output = bootstrap.stream(
        [sys.executable, "-c", "import sys; print(sys.stdout.isatty()); sys.exit(4)"], None, dict(os.environ), out=io.BytesIO()
    )
    assert (code, output.strip()) == (4, str(terminal))


# ---- the files around it -------------------------------------------------------------------------------------------------


def test_constraints_pin_whatever_pyproject_asks_for() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines), "exact versions, no build suffix, no address"
    names = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {re.sub(r"[-_.]+", "-", name).lower() for name in project["dependencies"] + project["optional-dependencies"]["dev"]}
    assert asked <= names
    assert {"torch==2.13.0", "triton==3.7.1"} <= set(lines)


def test_conda_and_the_dev_container_use_the_same_pins() -> None:
    yaml = (ROOT / "environment.yml").read_text()
    assert "- -c constraints.txt" in yaml and "- -e .[dev]" in yaml
    assert "==" not in yaml.replace("python==", ""), "no second place for versions"
    assert json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())["postCreateCommand"] == "make env"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_clean_leaves_work_and_progress(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    kept = ["exercises/ex00a.py", "notebooks/00.ipynb", ".course/progress.json", "course_lib/x.py", "tools/x.py", "tests/x.py"]
    gone = [".venv/bin/python", ".pytest_cache/x", "course_lib/__pycache__/x.pyc"]
    for name in kept + gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in gone if (tmp_path / name).exists()] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_plain_make_lists_every_command() -> None:
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())
    assert [name for name in phony.group(1).split() if f"\n  {name} " not in listed] == []
