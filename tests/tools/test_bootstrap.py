"""The set-up, with stand-ins for pip and uv: but for one, no test here fetches or installs
anything.

The stand-in is the ``.venv/bin/python`` that a patched ``create_venv`` writes. It notes every call,
says what the test wants pip and uv to say, and passes everything else on to the Python that runs
the tests.
"""

from __future__ import annotations

import ast
import importlib
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
from english import find_english

ROOT = Path(__file__).resolve().parents[2]
FILES = ("bootstrap.py", "installer.py", "machine.py", "translation.py")

STAND_IN = """#!/bin/sh
echo "$*" >> "{root}/calls"
case "$*" in
  *"-m uv pip install"*torch-backend*) echo "cause: dns error"; exit "$(cat "{root}/index")" ;;
  *"-m uv pip install"*) while [ -e "{root}/hold" ]; do sleep 0.02; done; cat "{root}/says"; exit "$(cat "{root}/code")" ;;
  *"-m pip"*install*) ;;
  *"pip config list"*) cat "{root}/settings" ;;
  *"import json, torch, triton"*) cat "{root}/versions" ;;
  *"m.version('torch')"*) cat "{root}/installed" ;;
  *) exec "{python}" "$@" ;;
esac
"""  # noqa: E501

DRIVER = """
import os, sys
sys.path.insert(0, sys.argv[1])
import bootstrap, machine
def create_venv():
    bin = os.path.join(bootstrap.VENV, "bin")
    for name in os.listdir(bootstrap.VENV):
        if name != bootstrap.MARKER:
            os.system("rm -rf '%s'" % os.path.join(bootstrap.VENV, name))
    os.makedirs(bin)
    with open(os.path.join(bin, "python"), "w") as file:
        file.write(sys.argv[2])
    os.chmod(file.name, 0o755)
bootstrap.create_venv = create_venv
bootstrap.GPU_FILES = (sys.argv[3],)
machine.shutil.disk_usage = lambda path: type("Usage", (), {"free": 100 * 10**9})
sys.exit(bootstrap.main(sys.argv[4:]))
"""


class Checkout:
    """A copy of the set-up in a folder of its own, with the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True)
        for name in FILES:
            shutil.copy(ROOT / "tools" / name, root / "tools" / name)
        (root / "pyproject.toml").write_text('[project]\nname = "tiny"\n')
        (root / "constraints.txt").write_text("torch==2.13.0\ntriton==3.7.1\nuv==0.13.9\n")
        self.set(
            says="",
            code="0",
            index="0",
            settings="",
            installed="",
            versions='["2.13.0+cpu", "3.7.1"]\n',
        )

    def set(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / name).write_text(text)

    def start(
        self, *arguments: str, gpu: bool = False, **environment: str
    ) -> subprocess.Popen[str]:
        stand_in = STAND_IN.format(root=self.root, python=sys.executable)
        device = "/dev/null" if gpu else "/dev/no-such-gpu"
        command = [
            sys.executable,
            "-c",
            DRIVER,
            str(self.root / "tools"),
            stand_in,
            device,
            *arguments,
        ]
        env = {name: value for name, value in os.environ.items() if name != "TORCH"} | environment
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def run(self, *arguments: str, **options) -> tuple[int, str]:
        process = self.start(*arguments, **options)
        output, _ = process.communicate()
        return process.returncode, output

    def calls(self) -> list[str]:
        """What uv was asked to install, one line a call."""
        calls = self.root / "calls"
        return (
            [line for line in calls.read_text().splitlines() if "-m uv pip install" in line]
            if calls.exists()
            else []
        )

    def hold(self) -> None:
        """uv, once started, installs until :meth:`release`."""
        self.set(hold="")

    def release(self) -> None:
        (self.root / "hold").unlink()

    def run_beside(self) -> tuple[int, str]:
        """A second set-up; uv is released when it says that it waits."""
        process = self.start()
        said = ""
        while "another set-up is at work" not in said:
            line = process.stdout.readline()
            assert line, f"it did not wait: {said}"
            said += line
        self.release()
        rest, _ = process.communicate()
        return process.returncode, said + rest

    def installs(self) -> int:
        return len(self.calls())

    def wait_for_uv(self) -> None:
        deadline = time.monotonic() + 240
        while not any("--editable" in call for call in self.calls()):
            assert time.monotonic() < deadline, "uv was never started"
            time.sleep(0.02)

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".course-stamp"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "course")


@pytest.fixture
def load(monkeypatch):
    """The set-up's modules, loaded afresh."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    for name in FILES:
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    return importlib.import_module


# ---- what a person sees --------------------------------------------------------------------------


def test_first_run_installs_and_the_second_is_ready_at_once(checkout: Checkout) -> None:
    code, output = checkout.run(gpu=True)
    assert code == 0, output
    assert (
        "making an environment" in output
        and "on disk" in output
        and "environment is ready" in output
    )
    assert output.count("\n") < 10
    page = json.loads(
        (checkout.root / ".venv" / "etc" / "jupyter" / "labconfig" / "page_config.json").read_text()
    )
    assert page == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}, (
        "no question about news in front of lesson 00"
    )
    (call,) = checkout.calls()
    assert (
        "--constraints constraints.txt" in call
        and "--compile-bytecode" in call
        and call.endswith("--editable .[lab]")
    )
    code, output = checkout.run()
    assert (code, output.count("\n")) == (0, 1) and "environment is ready" in output
    assert checkout.installs() == 1


def test_the_authors_tools_are_added_once_and_stay(checkout: Checkout) -> None:
    checkout.run(gpu=True)
    checkout.set(installed="2.13.0+cpu")
    code, output = checkout.run("--dev")
    assert (
        code == 0
        and "up to date" in output
        and checkout.calls()[-1].endswith("--editable .[dev,lab]")
    )
    for arguments in ((), ("--dev",)):
        assert checkout.run(*arguments)[1].count("\n") == 1 and checkout.installs() == 2
    (checkout.root / "constraints.txt").open("a").write("# changed\n")
    assert checkout.run()[0] == 0 and checkout.calls()[-1].endswith("--editable .[dev,lab]"), (
        "an update takes nothing away"
    )


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_pins_update_the_environment_in_place(checkout: Checkout, name: str) -> None:
    checkout.run(gpu=True)
    (checkout.root / ".venv" / "kept").touch()
    checkout.set(installed="2.13.0+cpu")
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    code, output = checkout.run()
    assert code == 0 and "up to date" in output and "fetching" not in output
    assert checkout.installs() == 2 and (checkout.root / ".venv" / "kept").exists()


def test_uv_that_fails_leaves_no_stamp_and_the_next_run_starts_afresh(checkout: Checkout) -> None:
    checkout.set(
        code="1", says="  cause: failed to copy file: No space left on device (os error 28)\n"
    )
    code, output = checkout.run()
    assert code == 1 and "os error 28" in output, "uv's own words are shown"
    assert "the disk is full" in output
    assert not checkout.stamp.exists()
    (checkout.root / ".venv" / "half").touch()
    checkout.set(code="0", says="")
    code, output = checkout.run()
    assert code == 0 and "did not finish" in output and "environment is ready" in output
    assert not (checkout.root / ".venv" / "half").exists()


def test_the_set_up_speaks_the_chosen_language(checkout: Checkout) -> None:
    code, output = checkout.run(COURSE_LANG="zh_CN")
    assert code == 0 and "环境已就绪" in output and find_english(output) == []
    (checkout.root / "constraints.txt").open("a").write("# changed\n")
    checkout.set(code="1", says="  cause: No space left on device (os error 28)\n")
    code, output = checkout.run(COURSE_LANG="zh_CN")
    assert code == 1 and "磁盘已满" in output
    assert find_english(output.replace("cause: No space left on device", "")) == []


@pytest.mark.parametrize("name", ["bootstrap", "installer", "machine"])
def test_every_sentence_of_the_set_up_is_translated(load, monkeypatch, name: str) -> None:
    monkeypatch.setenv("COURSE_LANG", "zh_CN")
    translation = load("translation")
    tree = ast.parse((ROOT / "tools" / f"{name}.py").read_text())
    marked = [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("_", "N_")
        if isinstance(node.args[0], ast.Constant)
    ]
    assert len(marked) > 10
    for text in marked:
        assert translation.gettext(text) != text and find_english(translation.gettext(text)) == []


def test_a_language_that_the_course_lacks_is_refused_first(checkout: Checkout) -> None:
    code, output = checkout.run(COURSE_LANG="fr")
    assert code == 1 and output.startswith("course: COURSE_LANG=fr: the course has en and zh_CN")
    assert output.count("\n") == 1 and not (checkout.root / ".venv").exists()


def test_killed_half_way_the_next_run_waits_for_the_orphaned_uv_and_repairs(
    checkout: Checkout,
) -> None:
    checkout.hold()
    first = checkout.start()
    checkout.wait_for_uv()
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not checkout.stamp.exists()
    code, output = checkout.run_beside()
    assert code == 0, output
    assert "did not finish" in output and "environment is ready" in output
    first.communicate()


def test_two_at_once_install_once(checkout: Checkout) -> None:
    checkout.hold()
    first = checkout.start(gpu=True)
    checkout.wait_for_uv()
    code, output = checkout.run_beside()
    first_output, _ = first.communicate()
    assert (first.returncode, code) == (0, 0), first_output + output
    assert "environment is ready" in output
    assert checkout.installs() == 1


def test_ctrl_c_ends_uv_and_says_so(checkout: Checkout) -> None:
    checkout.hold()
    process = checkout.start()
    checkout.wait_for_uv()
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert "stopped. Nothing is broken" in process.stdout.read()
    assert not checkout.stamp.exists()
    process.stdout.close()


def test_wrong_version_after_the_install_is_no_success(checkout: Checkout) -> None:
    checkout.set(versions='["2.12.0", "3.7.1"]\n')
    code, output = checkout.run()
    assert code == 1 and "torch 2.12.0 was installed, but 2.13.0 is pinned" in output
    assert not checkout.stamp.exists()


def test_a_copied_checkout_gets_an_environment_of_its_own(
    checkout: Checkout, tmp_path: Path
) -> None:
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


# ---- which build of PyTorch ----------------------------------------------------------------------


def test_without_a_gpu_the_cpu_build_comes_from_pytorchs_own_index(checkout: Checkout) -> None:
    code, output = checkout.run()
    torch, course = checkout.calls()
    assert code == 0 and "shows no GPU" in output and "TORCH=cuda" in output
    assert "--torch-backend cpu --no-deps torch==2.13.0" in torch and "torch-backend" not in course


def test_where_that_index_is_out_of_reach_nothing_large_is_fetched_unasked(
    checkout: Checkout,
) -> None:
    checkout.set(index="2", versions='["2.13.0+cu130", "3.7.1"]\n')
    code, output = checkout.run()
    assert (
        code == 1
        and "dns error" in output
        and "did not answer" in output
        and "several GB" in output
    )
    assert "`make lab TORCH=cuda`" in output and checkout.installs() == 1


@pytest.mark.parametrize(("answer", "takes_it"), [("y", True), ("", False), ("no", False)])
def test_on_a_terminal_the_large_build_is_asked_for(
    load, monkeypatch, capsys, answer: str, takes_it: bool
) -> None:
    bootstrap = load("bootstrap")
    monkeypatch.setattr("builtins.input", lambda question: answer)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True, raising=False)
    if takes_it:
        bootstrap.confirm_cuda_build()
    else:
        with pytest.raises(bootstrap.Stop, match="TORCH=cuda"):
            bootstrap.confirm_cuda_build()
    printed = capsys.readouterr()
    assert "5 GB on disk" in printed.out + printed.err


def test_a_cpu_build_that_was_asked_for_is_not_replaced_by_another(checkout: Checkout) -> None:
    checkout.set(index="2")
    code, output = checkout.run(TORCH="cpu")
    assert code == 1 and "could not be reached" in output and checkout.installs() == 1


def test_another_build_is_a_new_environment(checkout: Checkout) -> None:
    checkout.run(TORCH="cpu")
    checkout.set(versions='["2.13.0+cu130", "3.7.1"]\n')
    code, output = checkout.run(TORCH="cuda")
    assert (
        code == 0
        and "another build of PyTorch" in output
        and "torch-backend" not in checkout.calls()[-1]
    )
    assert checkout.run()[1].count("\n") == 1, "no wish is no reason"


def test_a_build_that_does_not_exist_is_refused(checkout: Checkout) -> None:
    code, output = checkout.run(TORCH="gpu")
    assert code == 1 and "it can be cpu or cuda" in output and checkout.installs() == 0


@pytest.mark.parametrize(
    ("settings", "asked", "chosen"),
    [
        ({}, None, ("cpu", True)),
        ({}, "cuda", ("cuda", False)),
        ({"no-index": "1"}, None, ("cuda", False)),
        ({"no-index": "1"}, "cpu", ("cpu", False)),
        ({"extra-index-url": "https://example.org/whl/cpu"}, None, ("cpu", False)),
        ({"index-url": "https://example.org/whl/cpu/"}, None, ("cpu", False)),
        ({"extra-index-url": "https://example.org/cpuset"}, "cpu", ("cpu", True)),
    ],
)
def test_where_pytorch_comes_from(
    load, monkeypatch, settings: dict, asked: str | None, chosen: tuple
) -> None:
    bootstrap = load("bootstrap")
    monkeypatch.setattr(bootstrap, "GPU_FILES", ())
    assert bootstrap.choose_torch(asked, settings) == chosen
    monkeypatch.setattr(bootstrap, "GPU_FILES", ("/dev/null",))
    if settings == {} and asked is None:
        assert bootstrap.choose_torch(asked, settings) == ("cuda", False)


def test_a_folder_with_the_cpu_wheel_is_looked_into(load, monkeypatch, tmp_path: Path) -> None:
    bootstrap = load("bootstrap")
    monkeypatch.setattr(sys, "version_info", (3, 11, 2))
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux.whl").touch()
    for place in (str(tmp_path), f"file://{tmp_path}"):
        assert bootstrap.choose_torch(None, {"find-links": place}) == ("cpu", False)
    with pytest.raises(bootstrap.Stop, match="TORCH=cuda is asked for"):
        bootstrap.choose_torch("cuda", {"find-links": str(tmp_path)})
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    assert bootstrap.choose_torch("cuda", {"find-links": str(tmp_path)}) == ("cuda", False)


# ---- the files around it -------------------------------------------------------------------------


def test_constraints_pin_whatever_pyproject_asks_for() -> None:
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines), (
        "exact versions, no build suffix, no address"
    )
    names = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {
        re.sub(r"[-_.]+", "-", name).lower()
        for names_of in (project["dependencies"], *project["optional-dependencies"].values())
        for name in names_of
        if not name.startswith(f"{project['name']}[")  # an extra that another one takes in
    }
    assert asked <= names
    assert {"torch==2.13.0", "triton==3.7.1"} <= set(lines)


def test_conda_binder_and_the_dev_container_use_the_same_pins() -> None:
    yaml = (ROOT / "environment.yml").read_text()
    assert "- -c constraints.txt" in yaml and yaml.endswith("- -e .[lab]\n")
    binder = (ROOT / ".binder" / "postBuild").read_text()
    assert (
        binder.count("constraints.txt") >= 4
        and "--torch-backend cpu" in binder
        and os.access(ROOT / ".binder" / "postBuild", os.X_OK)
    )
    for text in (yaml, binder, (ROOT / ".binder" / "environment.yml").read_text()):
        assert "==" not in text.replace("'^torch=='", ""), "no second place for versions"
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make env" and container["containerEnv"] == {
        "TORCH": "cpu"
    }


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_clean_leaves_work_and_progress(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    kept = [
        "exercises/ex00a.py",
        "notebooks/00.ipynb",
        ".course/progress.json",
        "course_lib/x.py",
        "tools/x.py",
        "tests/x.py",
    ]
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
