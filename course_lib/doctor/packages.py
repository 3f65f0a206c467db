"""Python, the packages that the course imports, and the settings that decide how it runs."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

from course_lib.base import paths, runtime
from course_lib.base.installation import find_version, install_again
from course_lib.base.translation import gettext as _
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding

# a release candidate is older: Triton's compiler crashes with 3.11.0rc1
OLDEST_PYTHON = (3, 11, 0, "final")
# (torch, triton) as major.minor. The first pair is pinned; the second is tested as well.
TESTED_PAIRS = (("2.13", "3.7"), ("2.11", "3.6"))
# The packages that the lessons, the grader and the panels import. Without one of them a part that
# learners use does not run.
NEEDED = (
    "torch",
    "triton",
    "numpy",
    "ml_dtypes",
    "matplotlib",
    "ipykernel",
    "ipywidgets",
    "polib",
    "psutil",
    "rich",
    "typer",
)
_TRUE = ("1", "true", "yes", "on", "y")


def examine_python() -> list[DoctorFinding]:
    version = f"Python {platform.python_version()}"
    if sys.version_info < OLDEST_PYTHON:
        return [
            DoctorFinding(
                "Python",
                PROBLEM,
                _(
                    "{version}; the course needs 3.11.0 or newer, and no release candidate of it"
                ).format(version=version),
                _name_other_python(),
            )
        ]
    return [DoctorFinding("Python", OK, version, detail=_("in {folder}").format(folder=sys.prefix))]


def _name_other_python() -> str:
    if paths.is_installed():
        return _(
            "Install the course for Python 3.12 (`python3.12 -m pip install "
            "norm-kernels-course`); in the course folder `rm -r .venv`, then `course "
            "env`."
        )
    return _("`make lab PYTHON=python3.12` makes the environment with another Python.")


def list_missing() -> list[str]:
    """List the packages without which no check and no lesson runs, and which this Python lacks."""
    return [name for name in NEEDED if find_version(name) is None]


def read_tested_versions(text: str | None = None) -> dict[str, str]:
    """Return the versions in constraints.txt by normalised package name; empty if that file is
    absent."""
    if text is None:
        file = paths.FILES / "constraints.txt"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {
        normalise(name): version
        for name, version in re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)", text)
    }


def examine_packages() -> list[DoctorFinding]:
    """Compare each package that the course imports with the tested versions; torch and triton have
    a check of their own."""
    tested = read_tested_versions()
    if missing := list_missing():
        # without a course folder the missing folder is the problem
        level = NOTE if paths.find_folder() is None else PROBLEM
        problem = f"not installed: {', '.join(missing)}"
        return [DoctorFinding(_("packages"), level, problem, install_again())]
    untested = [
        _("{name} {have} ({tested} was tested)").format(
            name=name, have=have, tested=tested[normalise(name)]
        )
        for name in NEEDED
        if name not in ("torch", "triton")
        and (have := find_version(name))
        and have.split("+")[0] != tested.get(normalise(name), have)
    ]
    return (
        [
            DoctorFinding(
                _("packages"), NOTE, f"other versions: {', '.join(untested)}", install_again()
            )
        ]
        if untested
        else []
    )


def examine_pair() -> list[DoctorFinding]:
    """Report whether torch and triton belong together: a CUDA build of torch requires one exact
    version of Triton."""
    torch, triton = find_version("torch"), find_version("triton")
    if torch is None or triton is None:
        return []  # examine_packages() reports this
    versions = f"torch {torch}, triton {triton}"
    required = _find_triton_of_torch()
    if required is not None and required != triton:
        return [
            DoctorFinding(
                _("torch and triton"),
                PROBLEM,
                _("{versions}: this torch asks for triton {required}").format(
                    versions=versions, required=required
                ),
                install_again(),
            )
        ]
    minors = (_read_minor(torch), _read_minor(triton))
    if minors not in TESTED_PAIRS:
        tested = " or ".join(
            _("torch {a} with triton {b}").format(a=a, b=b) for a, b in TESTED_PAIRS
        )
        return [
            DoctorFinding(
                _("torch and triton"),
                NOTE,
                _("{versions}: not a tested pair (tested: {tested})").format(
                    versions=versions, tested=tested
                ),
                install_again(),
            )
        ]
    return [
        DoctorFinding(
            _("torch and triton"), OK, _("{versions}, a tested pair").format(versions=versions)
        )
    ]


def _find_triton_of_torch() -> str | None:
    for line in importlib.metadata.requires("torch") or []:
        match = re.match(r"triton\s*==\s*([^\s;]+)", line)
        if match and "extra" not in line:
            return match.group(1)
    return None


def _read_minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def find_other_package() -> Path | None:
    """Return a file or folder on PYTHONPATH that Python would import in place of a package of the
    course; None if there is none."""
    folders = [
        Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder
    ]
    candidates = (
        folder / name
        for folder in folders
        for package in NEEDED
        for name in (f"{package}.py", package)
    )
    return next((path for path in candidates if path.exists()), None)


def examine_settings() -> list[DoctorFinding]:
    """Report the environment variables that decide how the course runs. A COURSE_DEVICE that is no
    device is what the kernels' check reports."""
    findings = []
    device = os.environ.get("COURSE_DEVICE", "").strip()
    interpret = os.environ.get("TRITON_INTERPRET", "").strip()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if device.lower() in ("cpu", "gpu"):
        findings.append(
            DoctorFinding(
                _("settings"),
                NOTE,
                _("COURSE_DEVICE={device} forces {mode} mode").format(
                    device=device, mode=device.upper()
                ),
                _("`unset COURSE_DEVICE` lets the course choose."),
            )
        )
    if interpret and runtime.interpreter_was_asked_for():
        effect = (
            _("the course goes by COURSE_DEVICE")
            if device
            else (
                _("it forces CPU mode")
                if interpret.lower() in _TRUE
                else _("it has no effect on the course")
            )
        )
        findings.append(
            DoctorFinding(
                _("settings"),
                NOTE,
                _("TRITON_INTERPRET={interpret} is set; {effect}").format(
                    interpret=interpret, effect=effect
                ),
                _("`unset TRITON_INTERPRET` lets the course choose."),
            )
        )
    if visible is not None and visible.strip() in ("", "-1"):
        findings.append(
            DoctorFinding(
                _("settings"),
                NOTE,
                _("CUDA_VISIBLE_DEVICES={visible!r} hides every GPU").format(visible=visible),
                _("`unset CUDA_VISIBLE_DEVICES` shows them again."),
            )
        )
    return findings
