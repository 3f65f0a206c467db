"""Checks that small kernels run and compile here, with a remedy for each failure."""

from __future__ import annotations

import sys

from course_lib.base.installation import install_again
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding
from course_lib.doctor.trials import Trial

_TOO_EARLY = (
    "Something imports Triton before the course: a sitecustomize.py, a .pth file, or IPython's"
    " startup folder. Take it out."
)


def examine_kernels(canary: Trial) -> list[DoctorFinding]:
    """Report on the kernels with checked values, which a separate process has launched in the mode
    that the course chooses."""
    report = canary.report()
    if "refused" in report:
        # This message is meant for a person who imports the course, and may send that person to the
        # doctor: replace its remedy.
        problem, _, given_remedy = report["refused"].partition(". ")
        remedy = (
            "`unset COURSE_DEVICE` lets the course choose."
            if "COURSE_DEVICE" in problem
            else _TOO_EARLY
            if "imported" in problem
            else given_remedy
        )
        return [DoctorFinding("kernels", PROBLEM, problem, remedy)]
    if "crash" in report:
        return [
            DoctorFinding(
                "kernels",
                PROBLEM,
                f"a small kernel does not run: {report['crash']}",
                find_remedy(canary.errors),
            )
        ]
    findings = []
    mode, triton = report["mode"], report["triton"]
    if triton != mode:
        problem = (
            f"Triton is set up for the {'interpreter' if triton == 'cpu' else 'GPU'}, and the"
            f" course chose {mode.upper()} mode"
        )
        findings.append(DoctorFinding("import order", PROBLEM, problem, _TOO_EARLY))
    for loss in report.get("losses", []):
        findings.append(
            DoctorFinding(
                "interpreter", NOTE, f"not corrected in this Triton: {loss}", install_again()
            )
        )
    if report["wrong"]:
        findings.append(
            DoctorFinding(
                "kernels",
                PROBLEM,
                "small kernels give wrong results: " + "; ".join(report["wrong"]),
                install_again(),
            )
        )
    elif not findings:
        findings.append(
            DoctorFinding(
                "kernels",
                OK,
                f"small kernels give the right values in {mode.upper()} mode",
                detail=f"in {report['seconds']:g} s",
            )
        )
    return findings


def examine_compiler(trial: Trial) -> list[DoctorFinding]:
    """Report whether Triton compiles a small kernel to a GPU's machine code. In CPU mode, too, a
    kernel passes only if it compiles."""
    report = trial.report()
    if "compiled" in report:
        return []
    problem, _, remedy = report.get("refused", "").partition(". ")
    if not problem:
        problem = f"a small kernel is not compiled: {report['crash']}"
        remedy = find_remedy(trial.errors)
    return [
        DoctorFinding(
            "compiler", PROBLEM, f"{problem}; until then no kernel passes a check", remedy
        )
    ]


def find_remedy(errors: str) -> str:
    if "Failed to find C compiler" in errors:
        return (
            "Triton needs a C compiler on a GPU. Debian, Ubuntu: `sudo apt install gcc`; Fedora:"
            " `sudo dnf install gcc`."
        )
    if "Python.h" in errors:
        major, minor = sys.version_info[:2]
        return (
            "Triton needs Python's C headers on a GPU. Debian, Ubuntu: `sudo apt install"
            f" python{major}.{minor}-dev`."
        )
    if "out of memory" in errors.lower():
        return (
            "The GPU's memory is taken. `nvidia-smi` says by whom; `export COURSE_DEVICE=cpu` works"
            " meanwhile."
        )
    if "No space left on device" in errors:
        return (
            "The disk is full: Triton keeps compiled kernels in ~/.triton; TRITON_CACHE_DIR moves"
            " that folder."
        )
    return (
        install_again()
        + " On a GPU, `export COURSE_DEVICE=cpu` tells whether the GPU is the cause."
    )
