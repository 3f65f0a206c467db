"""The doctor: each finding from made-up facts, and the real processes for crashes, hangs and the
canary."""

from __future__ import annotations

import importlib.metadata
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from course_lib import doctor
from course_lib.base import paths, runtime
from course_lib.doctor import (
    NOTE,
    OK,
    PROBLEM,
    DoctorFinding,
    examination,
    gpu,
    isolation,
    kernels,
    machine,
    packages,
    trials,
)
from course_lib.doctor.gpu import Card
from course_lib.doctor.trials import Trial

ROOT = Path(__file__).resolve().parents[2]
H100 = {"torch": "2.13.0+cu130", "cuda": "13.0", "hip": None, "triton": "3.7.1", "available": True}
CPU_BUILD = {
    "torch": "2.13.0+cpu",
    "cuda": None,
    "hip": None,
    "triton": "3.7.1",
    "available": False,
}


def levels(findings) -> list[tuple[str, str]]:
    return [(finding.name, finding.level) for finding in findings]


def one(findings) -> DoctorFinding:
    (finding,) = findings
    return finding


# ---- the whole examination -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def findings() -> list[DoctorFinding]:
    old = os.environ.pop("COURSE_DEVICE", None)
    try:
        return doctor.examine()
    finally:
        if old is not None:
            os.environ["COURSE_DEVICE"] = old


def test_this_machine_can_run_the_course(findings) -> None:
    assert doctor.can_run(findings), doctor.as_text(findings)
    facts = {finding.name: finding.what for finding in findings if finding.level == OK}
    assert {
        "system",
        "Python",
        "torch and triton",
        "kernels",
    } <= facts.keys() and "right values" in facts["kernels"]


def test_whatever_is_wrong_has_a_remedy(findings) -> None:
    assert [finding for finding in findings if finding.level != OK and not finding.remedy] == []


def test_text_has_what_is_to_do_with_its_remedy_then_the_facts_and_the_conclusion() -> None:
    wrong = DoctorFinding("kernels", PROBLEM, "wrong", "Do this.")
    little = DoctorFinding("disk", NOTE, "little", "Free some.")
    text = doctor.as_text(
        [DoctorFinding("system", OK, "Linux"), wrong, little, DoctorFinding("Python", OK, "3.12")]
    )
    *lines, conclusion = text.splitlines()
    assert lines == [
        "✗ kernels: wrong",
        "  → Do this.",
        "! disk: little",
        "  → Free some.",
        "  Linux; 3.12",
    ]
    fact = DoctorFinding("Python", OK, "3.12", detail="in /opt")
    assert doctor.as_text([fact], details=True).splitlines()[
        0
    ] == "  Python: 3.12; in /opt" and "/opt" not in doctor.as_text([fact])
    assert "cannot run here yet" in conclusion and doctor.as_text([little]).endswith(
        "The course can run here."
    )


@pytest.mark.parametrize(
    "probe",
    [CPU_BUILD, {**H100, "name": "NVIDIA H100 80GB HBM3", "capability": [9, 0]}],
    ids=["CPU", "GPU"],
)
@pytest.mark.parametrize(
    "why",
    [{}, {"namespaces and Landlock": "unshare: Operation not permitted"}],
    ids=["namespaces", "Landlock"],
)
def test_where_nothing_is_wrong_the_doctor_says_at_most_five_lines(
    monkeypatch, probe: dict, why: dict
) -> None:
    monkeypatch.setattr(
        sys, "prefix", "/home/somebody/a/folder/with/a/long/name/norm-kernels-course/.venv"
    )
    installed(monkeypatch, "2.13.0+cu130", "3.7.1")
    facts = [
        *machine.examine_system(),
        *packages.examine_python(),
        *packages.examine_pair(),
        *gpu.examine_gpu(probe, []),
        *kernels.examine_kernels(_Reported(mode="gpu", triton="gpu")),
        *isolation.examine_isolation(
            {"tier": "Landlock" if why else "namespaces and Landlock", "why": why}
        ),
    ]
    assert {fact.level for fact in facts} == {OK}
    text, details = doctor.as_text(facts, 80), doctor.as_text(facts, 80, details=True)
    assert len(text.splitlines()) <= 5, text
    assert sys.prefix in details and all(
        reason in " ".join(details.split()) for reason in why.values()
    )


@pytest.mark.parametrize(
    ("torch", "says"),
    [
        ("raise ImportError('libcudart.so.13: cannot open shared object file')", "libcudart.so.13"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit(7)", "exit code 7"),
    ],
)
def test_a_broken_torch_is_a_finding(monkeypatch, tmp_path: Path, torch: str, says: str) -> None:
    (tmp_path / "torch.py").write_text(torch)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    findings = doctor.examine()
    assert not doctor.can_run(findings)
    assert says in next(finding.what for finding in findings if finding.name == "torch")
    kernels = next(finding for finding in findings if finding.name == "kernels")
    assert kernels.level == PROBLEM and kernels.remedy


def remove(monkeypatch, *missing: str) -> None:
    """Let this Python look as if it had none of these packages."""
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in missing:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_missing_packages_are_named_once_with_one_remedy_and_nothing_is_tried_without_them(
    monkeypatch,
) -> None:
    remove(monkeypatch, "torch", "triton")
    findings = doctor.examine()
    assert [(finding.name, finding.what) for finding in findings if finding.level == PROBLEM] == [
        ("packages", "not installed: torch, triton")
    ]
    remedies = [finding.remedy for finding in findings if finding.remedy]
    assert len(set(remedies)) == len(remedies), doctor.as_text(findings)
    assert {"kernels", "compiler", "GPU", "isolation"}.isdisjoint(
        finding.name for finding in findings
    )


def test_an_equal_remedy_is_written_once() -> None:
    broken = DoctorFinding("torch", PROBLEM, "does not import", "Install it anew.")
    also_broken = DoctorFinding("kernels", PROBLEM, "x", broken.remedy)
    text = doctor.as_text(
        examination._collect([("torch", lambda: [broken]), ("kernels", lambda: [also_broken])])
    )
    assert text.count("Install it anew.") == 1 and text.count("As said above.") == 1


@pytest.fixture
def installed_package(monkeypatch, tmp_path):
    """The course as an installed package has it, in an empty folder."""
    monkeypatch.setattr(paths, "SHIPPED", paths.FILES)
    monkeypatch.delenv("COURSE_EXERCISES", raising=False)
    monkeypatch.delenv("COURSE_STATE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_outside_a_course_folder_that_is_said_first_and_once(
    monkeypatch, installed_package
) -> None:
    remove(monkeypatch, *packages.NEEDED)
    findings = doctor.examine()
    text = doctor.as_text(findings)
    assert findings[0].level == PROBLEM and "course init my-course`" in findings[0].remedy
    assert text.count("course init") == 1 and text.count("not in a") == 1, text
    assert "make " not in text.replace("makes", "") and "constraints.txt" not in text, text
    assert [finding.name for finding in findings if finding.level == PROBLEM] == ["course folder"]
    assert not doctor.can_run(findings)


def test_a_class_can_be_graded_outside_a_course_folder_and_the_doctor_goes_on(
    monkeypatch, installed_package
) -> None:
    (first,) = machine.examine_folder(can_check=True)
    assert (first.name, first.level) == ("course folder", NOTE)


def test_in_a_course_folder_remedies_name_the_commands_that_are_there(
    monkeypatch, installed_package
) -> None:
    from course_lib.learner import folder

    folder.make(installed_package / "c")
    monkeypatch.chdir(installed_package / "c")
    findings = [
        *packages.examine_python(),
        *gpu.examine_gpu(CPU_BUILD, [Card("H100", "580.1")]),
        *isolation.examine_isolation(
            {"tier": "limits", "why": {"namespaces": "no", "Landlock": "none"}}
        ),
        *machine.examine_files(),
    ]
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    findings += packages.examine_python()
    (installed_package / "c" / "exercises").rename(installed_package / "gone")
    findings += machine.examine_files()
    remove(monkeypatch, *packages.NEEDED)
    findings += doctor.examine()
    text = doctor.as_text(findings, 10_000)
    for words in ("`make ", "then make", "constraints.txt", "Chromium"):
        assert words not in text, text
    assert "`course env`" in text and "`TORCH=cuda course env`" in text and "course init" in text


def test_a_refused_choice_is_a_finding_in_its_own_words(monkeypatch) -> None:
    monkeypatch.setenv("COURSE_DEVICE", "tpu")
    findings = doctor.examine()
    assert not doctor.can_run(findings)
    assert "tpu" in next(finding.what for finding in findings if finding.name == "kernels")
    assert ("settings", PROBLEM) not in levels(findings), "the kernels' finding says it"


def test_triton_imported_too_early_is_found(monkeypatch, tmp_path: Path) -> None:
    # what a .pth file or IPython's startup folder does: Triton comes up for compiling, and the
    # course wants CPU mode
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nos.environ.pop('TRITON_INTERPRET', None)\nimport triton\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    child = Trial(trials.CANARY, 120)
    try:
        finding = one(kernels.examine_kernels(child))
    finally:
        child.stop()
    assert (
        finding.level == PROBLEM
        and "imported before" in finding.what
        and "sitecustomize" in finding.remedy
    )


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.sweep)])
def test_the_command_wraps_at_words_and_never_sends_the_doctor_to_the_doctor(columns) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COURSE_DEVICE": "gpu",
        "CUDA_VISIBLE_DEVICES": "",
        "COLUMNS": str(columns),
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "course_command.py"), "doctor"],
        capture_output=True,
        text=True,
        env=environment,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and not done.stderr and max(map(len, lines)) <= columns
    assert "✗ kernels: " in done.stdout and "`course doctor`" not in done.stdout
    assert "→ `unset COURSE_DEVICE`" in done.stdout and "Follow the arrows below ✗" in " ".join(
        done.stdout.split()
    )
    assert all(
        line[:2] in ("! ", "✗ ", "  ")
        for line in lines[
            : next(n for n, line in enumerate(lines) if line.startswith("The course"))
        ]
    )


def test_a_command_that_is_longer_than_the_terminal_is_wide_stays_whole() -> None:
    path = "/home/someone/" + "with-a-long-name/" * 8 + "file"
    finding = DoctorFinding(
        "compiler",
        PROBLEM,
        f"cannot be started ({path})",
        f"First look, then `chmod +x {path}` and go on.",
    )
    text = doctor.as_text([finding], 80)
    lines = text.splitlines()
    assert any(f"`chmod +x {path}`" in line for line in lines) and any(
        f"({path})" in line for line in lines
    )
    assert "…" not in text and all(len(line) <= 80 for line in lines if path not in line)


def test_a_compiler_that_does_not_run_is_a_finding_with_its_own_remedy() -> None:
    class Stub:
        errors = ""

        def __init__(self, **facts: object) -> None:
            self.facts = facts

        def report(self) -> dict:
            return self.facts

    assert kernels.examine_compiler(Stub(compiled=True)) == []
    refused = one(
        kernels.examine_compiler(
            Stub(refused="ptxas cannot be started. `chmod +x ptxas` helps. Or not.")
        )
    )
    assert (refused.name, refused.level, refused.remedy) == (
        "compiler",
        PROBLEM,
        "`chmod +x ptxas` helps. Or not.",
    )
    crashed = one(kernels.examine_compiler(Stub(crash="its process was ended by SIGSEGV")))
    assert crashed.level == PROBLEM and "SIGSEGV" in crashed.what and crashed.remedy


def test_a_check_that_breaks_does_not_take_the_others_along(monkeypatch) -> None:
    monkeypatch.setattr(machine, "examine_disk", lambda: 1 / 0)
    monkeypatch.setattr(trials, "CANARY", 'print(\'{"refused": "not here"}\')')
    monkeypatch.setattr(trials, "PROBE", "")
    findings = doctor.examine()
    broken = next(finding for finding in findings if finding.name == "disk")
    assert broken.level == NOTE and "ZeroDivisionError" in broken.what
    assert "isolation" in {finding.name for finding in findings}


def test_module_runs_without_typer_and_rich() -> None:
    code = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None; from"
        " course_lib.doctor.__main__ import main; sys.exit(main())"
    )
    env = {
        **os.environ,
        "COURSE_DEFER_CHOICE": "1",
        "COURSE_DEVICE": "cpu",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "ascii",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300
    )
    assert (
        done.returncode == 0
        and done.stdout.endswith("The course can run here.\n")
        and "COURSE_DEVICE=cpu" in done.stdout
    ), done.stderr


# ---- processes of its own ------------------------------------------------------------------------


def test_a_hang_ends_at_its_limit_with_all_its_children() -> None:
    child = Trial(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time;"
        " time.sleep(600)'])",
        0.7,
    )
    assert "no answer within" in child.report()["crash"]
    group = child.pid
    child.stop()
    deadline = time.monotonic() + 60
    while _alive(group):
        assert time.monotonic() < deadline, "a grandchild is still there"
        time.sleep(0.05)


def _alive(group: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(pgrp) == group and state not in "ZX":
            return True
    return False


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 3.0) for seed in range(3)])
def test_a_killed_doctor_leaves_nothing(moment: float, tmp_path: Path) -> None:
    code = "from course_lib import doctor; print('now', flush=True); doctor.examine()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COURSE_DEFER_CHOICE": "1"}
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, cwd=tmp_path
    )
    assert owner.stdout is not None and owner.stdout.readline() == b"now\n"
    time.sleep(moment)
    below = psutil.Process(owner.pid).children(recursive=True)
    owner.kill()
    owner.communicate()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 0.5) for seed in range(3)])
def test_a_killed_trial_is_a_finding_and_its_children_end(moment: float) -> None:
    trial = Trial(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time;"
        " time.sleep(600)'])",
        30,
    )
    group = trial.pid
    assert group is not None
    threading.Timer(moment, lambda: os.kill(group, signal.SIGKILL)).start()
    assert trial.report() == {"crash": "its process was ended by SIGKILL"}
    deadline = time.monotonic() + 60
    while _alive(group):
        assert time.monotonic() < deadline, "a grandchild is still there"
        time.sleep(0.05)


def test_facts_before_a_crash_are_kept() -> None:
    child = Trial('import os; print(\'{"torch": "2.13.0"}\', flush=True); os.abort()', 30)
    report = child.report()
    child.stop()
    assert report == {"torch": "2.13.0", "crash": "its process was ended by SIGABRT"}


@pytest.mark.parametrize(
    ("errors", "says"),
    [
        ("RuntimeError: Failed to find C compiler. Please specify via CC", "apt install gcc"),
        ("main.c:3:10: fatal error: Python.h: No such file or directory", "-dev"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "nvidia-smi"),
        ("OSError: [Errno 28] No space left on device", "TRITON_CACHE_DIR"),
        ("anything else", "COURSE_DEVICE=cpu"),
    ],
)
def test_remedies_for_a_kernel_that_does_not_run(errors: str, says: str) -> None:
    assert says in kernels.find_remedy(errors)


# ---- packages ------------------------------------------------------------------------------------


def installed(monkeypatch, torch: str, triton: str, asks: list[str] | None = None) -> None:
    versions = {"torch": torch, "triton": triton}
    monkeypatch.setattr(packages, "find_version", lambda name: versions.get(name, "1.0"))
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asks or [])


@pytest.mark.parametrize(
    ("torch", "triton", "asks", "level"),
    [
        ("2.13.0+cpu", "3.7.1", [], OK),
        ("2.13.0", "3.7.1", ["filelock", 'triton==3.7.1; platform_system == "Linux"'], OK),
        ("2.11.0", "3.6.0", ["triton==3.6.0"], OK),
        ("2.13.0+cpu", "3.6.0", [], NOTE),
        ("2.14.0", "3.8.0", ["triton==3.8.0"], NOTE),
        ("2.13.0", "3.9.0", ['triton==3.7.1; platform_system == "Linux"'], PROBLEM),
    ],
)
def test_torch_and_triton_belong_together(
    monkeypatch, torch: str, triton: str, asks: list[str], level: str
) -> None:
    installed(monkeypatch, torch, triton, asks)
    finding = one(packages.examine_pair())
    assert finding.level == level and torch in finding.what and triton in finding.what
    assert (finding.remedy == "") == (level == OK)


def test_tested_versions_are_those_of_the_constraints_file() -> None:
    tested = packages.read_tested_versions()
    assert tested["torch"] == "2.13.0" and tested["triton"] == "3.7.1"
    assert {packages.normalise(name) for name in packages.NEEDED} <= set(tested)
    assert packages.read_tested_versions("# a==1\nml_dtypes==0.5.4\nJinja2==3.1.6\n") == {
        "ml-dtypes": "0.5.4",
        "jinja2": "3.1.6",
    }


def test_another_version_is_a_note(monkeypatch) -> None:
    tested = packages.read_tested_versions()
    monkeypatch.setattr(
        packages,
        "find_version",
        lambda name: "0.1" if name == "numpy" else tested[packages.normalise(name)],
    )
    found = [finding for finding in packages.examine_packages() if finding.level != OK]
    assert "numpy 0.1" in one(found).what and one(found).level == NOTE


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 10, 2, "final", 0), PROBLEM),
        ((3, 11, 0, "candidate", 1), PROBLEM),
        ((3, 11, 0, "final", 0), OK),
        ((3, 12, 9, "final", 0), OK),
        ((3, 13, 0, "final", 0), OK),
        ((3, 14, 0, "final", 0), OK),
    ],
)
def test_python_versions(monkeypatch, version: tuple, level: str) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert one(packages.examine_python()).level == level


def test_macos_is_sent_to_the_readme(monkeypatch) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    finding = one(machine.examine_system())
    assert (
        finding.level == PROBLEM and "macOS" in finding.what and "Other systems" in finding.remedy
    )


# ---- settings and GPU ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, []),
        ({"COURSE_DEVICE": "cpu"}, [NOTE]),
        ({"COURSE_DEVICE": "cuda"}, []),
        ({"TRITON_INTERPRET": "1"}, [NOTE]),
        ({"COURSE_DEVICE": "gpu", "TRITON_INTERPRET": "1"}, [NOTE, NOTE]),
        ({"CUDA_VISIBLE_DEVICES": ""}, [NOTE]),
        ({"CUDA_VISIBLE_DEVICES": "0"}, []),
    ],
)
def test_settings_that_force_a_mode(monkeypatch, variables: dict, found: list[str]) -> None:
    for name in ("COURSE_DEVICE", "TRITON_INTERPRET", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runtime, "_set_here", set())
    assert [finding.level for finding in packages.examine_settings()] == found


def test_what_the_course_set_itself_is_no_finding(monkeypatch) -> None:
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(runtime, "_set_here", {"TRITON_INTERPRET"})
    assert not [
        finding for finding in packages.examine_settings() if "TRITON_INTERPRET" in finding.what
    ]


@pytest.mark.parametrize(
    ("probe", "cards", "level", "says"),
    [
        (CPU_BUILD, [], OK, "no GPU"),
        (
            {**H100, "name": "NVIDIA H100", "capability": [9, 0]},
            [Card("NVIDIA H100", "580.1")],
            OK,
            "9.0",
        ),
        ({**H100, "name": "Tesla T4", "capability": [7, 5]}, [], NOTE, "8.0 and newer"),
        ({**H100, "name": "Tesla P100", "capability": [6, 0]}, [], NOTE, "8.0 and newer"),
        (CPU_BUILD, [Card("NVIDIA L4", "580.65.06")], NOTE, "build without CUDA"),
        (
            {**H100, "available": False},
            [Card("NVIDIA L4", "535.183.01")],
            NOTE,
            "too old for torch",
        ),
        (
            {**H100, "available": False, "warning": "Error 803"},
            [Card("NVIDIA L4", "580.65")],
            NOTE,
            "Error 803",
        ),
        (CPU_BUILD, "NVIDIA-SMI has failed", NOTE, "driver does not work"),
        (
            {**H100, "hip": "7.1", "cuda": None, "name": "MI300X", "capability": [9, 4]},
            [],
            NOTE,
            "ROCm",
        ),
        ({"torch": "2.13.0", "crash": "ImportError: libtriton.so"}, [], PROBLEM, "libtriton.so"),
    ],
)
def test_gpu_and_driver(probe: dict, cards, level: str, says: str) -> None:
    finding = one(gpu.examine_gpu(probe, cards))
    assert finding.level == level and says in finding.what
    assert (finding.remedy == "") == (level == OK)


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 'NVIDIA H100 80GB HBM3, 580.65.06'", [Card("NVIDIA H100 80GB HBM3", "580.65.06")]),
        (
            "echo 'NVIDIA-SMI has failed because it could not talk to the driver.'; exit 9",
            "NVIDIA-SMI has failed because it could not talk to the driver.",
        ),
        ("exit 6", "nvidia-smi ended with exit code 6"),
        ("echo 'No devices were found'", []),
    ],
)
def test_what_nvidia_smi_says(monkeypatch, tmp_path: Path, script: str, found) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpu.ask_nvidia_smi() == found


# ---- memory, disk, files -------------------------------------------------------------------------


def test_little_memory_is_a_note_for_machine_container_and_gpu(monkeypatch, tmp_path: Path) -> None:
    import psutil

    plenty = namedtuple("vm", "available")(64 * machine.GB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: plenty)
    monkeypatch.setattr(machine, "_read_container_limit", lambda: None)
    assert levels(machine.examine_memory({"gpu_free": 70e9, "gpu_total": 80e9})) == []
    assert levels(machine.examine_memory({"gpu_free": 1e9, "gpu_total": 80e9})) == [
        ("GPU memory", NOTE)
    ]
    monkeypatch.setattr(machine, "_read_container_limit", lambda: 10**9)
    assert one(machine.examine_memory({})).what.startswith("1.0 GB available")
    assert one(machine.examine_memory({})).level == NOTE


def test_container_limit_is_what_is_left_of_it(tmp_path: Path) -> None:
    assert machine._read_container_limit(tmp_path) is None
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.max").write_text("1000\n")
    assert machine._read_container_limit(tmp_path) == 700
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._read_container_limit(tmp_path) is None


@pytest.mark.parametrize(("free", "found"), [(10**7, [PROBLEM]), (5 * 10**8, [NOTE]), (10**10, [])])
def test_disk(monkeypatch, free: int, found: list[str]) -> None:
    monkeypatch.setattr(
        machine.shutil, "disk_usage", lambda path: namedtuple("usage", "free")(free)
    )
    assert [finding.level for finding in machine.examine_disk()] == found


def test_files_that_cannot_be_written(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "none"))
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "not" / "yet"))
    assert levels(machine.examine_files()) == [("your exercises", PROBLEM)]
    assert not (tmp_path / "not").exists(), "looking makes nothing"
    (tmp_path / "none").mkdir()
    assert levels(machine.examine_files()) == []

    def refused(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", refused)
    findings = machine.examine_files()
    assert [finding.level for finding in findings] == [
        PROBLEM,
        PROBLEM,
    ] and "Permission denied" in findings[0].what


# ---- the canary ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["copy", "variance"])
def test_a_canary_with_wrong_values_is_noticed(tmp_path: Path, wrong: str) -> None:
    """The canary's own kernels, broken on purpose, must be reported."""
    source = (ROOT / "course_lib" / "doctor" / "canary.py").read_text()
    healthy, broken = {
        "copy": (
            "tl.load(x_ptr + cols, mask=mask, other=0.0), mask=mask)",
            "tl.load(x_ptr + cols, mask=mask, other=0.0))",
        ),
        "variance": ("tl.where(mask, x - mean, 0.0)", "x - mean"),
    }[wrong]
    assert source.count(healthy) == 1
    (tmp_path / "broken_canary.py").write_text(source.replace(healthy, broken))
    child = Trial(
        trials.CANARY.replace(
            "from course_lib.doctor import canary",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import broken_canary as canary",
        ),
        120,
    )
    try:
        findings = kernels.examine_kernels(child)
    finally:
        child.stop()
    assert levels(findings) == [("kernels", PROBLEM)] and wrong in findings[0].what


class _Reported:
    """A canary's child that has already answered."""

    errors = ""

    def __init__(self, **facts) -> None:
        self.facts = {
            "mode": "cpu",
            "triton": "cpu",
            "wrong": [],
            "losses": [],
            "seconds": 0.1,
        } | facts

    def report(self) -> dict:
        return self.facts


def test_what_could_not_be_corrected_in_the_interpreter_is_a_note() -> None:
    assert {finding.level for finding in kernels.examine_kernels(_Reported())} == {OK}
    notes = [
        finding
        for finding in kernels.examine_kernels(_Reported(losses=["fp32 to bf16 is truncated"]))
        if finding.level == NOTE
    ]
    assert [note.what for note in notes] == [
        "not corrected in this Triton: fp32 to bf16 is truncated"
    ] and notes[0].remedy
    assert doctor.can_run(kernels.examine_kernels(_Reported(losses=["anything"])))


# ---- isolation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "level", "says"),
    [
        ({"tier": "namespaces and Landlock", "why": {}}, OK, "namespaces"),
        (
            {
                "tier": "Landlock",
                "why": {"namespaces and Landlock": "unshare: Operation not permitted"},
            },
            OK,
            "under Landlock",
        ),
        (
            {
                "tier": "limits only",
                "why": {
                    "namespaces and Landlock": "unshare: no",
                    "Landlock": "this kernel has no Landlock",
                },
            },
            NOTE,
            "confine nobody",
        ),
        ({"crash": "its process was ended by SIGSEGV"}, NOTE, "SIGSEGV"),
    ],
)
def test_the_isolation_is_named_with_what_would_raise_it(facts, level, says) -> None:
    finding = one(isolation.examine_isolation(facts))
    assert finding.level == level and says in finding.what and bool(finding.remedy) == (level != OK)
    assert "secure" not in finding.what
    assert all(reason in finding.what + finding.detail for reason in facts.get("why", {}).values())


def test_a_package_in_front_of_the_installed_one_is_named(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError")
    monkeypatch.setenv("PYTHONPATH", f"/nowhere{os.pathsep}{tmp_path}")
    finding, *_ = gpu.examine_gpu({"crash": "RuntimeError"}, [])
    assert (
        finding.level == doctor.PROBLEM
        and f"move {tmp_path / 'torch.py'} away" in finding.remedy
        and "unset PYTHONPATH" in finding.remedy
    )
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    finding, *_ = gpu.examine_gpu({"crash": "RuntimeError"}, [])
    assert "PYTHONPATH" not in finding.remedy


def test_the_isolation_of_this_machine_is_found_out():
    facts = Trial(trials.CONFINEMENT, 60).report()
    assert facts["tier"] in ("namespaces and Landlock", "Landlock", "limits only"), facts
    (finding,) = isolation.examine_isolation(facts)
    assert finding.what.startswith("checks run ")
