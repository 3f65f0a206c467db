"""Checks that small kernels run and compile here, with a remedy for each failure."""

from __future__ import annotations

import sys

from course_lib.base.installation import install_again
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding, split_message
from course_lib.doctor.trials import Trial

_TOO_EARLY = N_(
    "Something imports Triton before the course: a sitecustomize.py, a .pth file,"
    " or IPython's startup folder. Take it out."
)


def examine_kernels(canary: Trial) -> list[DoctorFinding]:
    """Report on the kernels with checked values, which a separate process has launched in the mode
    that the course chooses."""
    report = canary.report()
    if "refused" in report:
        # This message is meant for a person who imports the course, and may send that person to the
        # doctor: replace its remedy.
        problem, given_remedy = split_message(report["refused"])
        remedy = (
            _("`unset COURSE_DEVICE` lets the course choose.")
            if "COURSE_DEVICE" in problem
            else _(_TOO_EARLY)
            if "course_lib" in problem
            else given_remedy
        )
        return [DoctorFinding(_("kernels"), PROBLEM, problem, remedy)]
    if "crash" in report:
        return [
            DoctorFinding(
                _("kernels"),
                PROBLEM,
                _("a small kernel does not run: {crash}").format(crash=report["crash"]),
                find_remedy(canary.errors),
            )
        ]
    findings = []
    mode, triton = report["mode"], report["triton"]
    if triton != mode:
        problem = _("Triton is set up for the {place}, and the course chose {mode} mode").format(
            place=_("interpreter") if triton == "cpu" else "GPU", mode=mode.upper()
        )
        findings.append(DoctorFinding(_("import order"), PROBLEM, problem, _(_TOO_EARLY)))
    for loss in report.get("losses", []):
        findings.append(
            DoctorFinding(
                _("interpreter"),
                NOTE,
                _("not corrected in this Triton: {loss}").format(loss=loss),
                install_again(),
            )
        )
    if report["wrong"]:
        findings.append(
            DoctorFinding(
                _("kernels"),
                PROBLEM,
                _("small kernels give wrong results: ") + "; ".join(report["wrong"]),
                install_again(),
            )
        )
    elif not findings:
        findings.append(
            DoctorFinding(
                _("kernels"),
                OK,
                _("small kernels give the right values in {mode} mode").format(mode=mode.upper()),
                detail=_("in {seconds:g} s").format(seconds=report["seconds"]),
            )
        )
    return findings


def examine_compiler(trial: Trial) -> list[DoctorFinding]:
    """Report whether Triton compiles a small kernel to a GPU's machine code. In CPU mode, too, a
    kernel passes only if it compiles."""
    report = trial.report()
    if "compiled" in report:
        return []
    problem, remedy = split_message(report.get("refused", ""))
    if not problem:
        problem = _("a small kernel is not compiled: {crash}").format(crash=report["crash"])
        remedy = find_remedy(trial.errors)
    return [
        DoctorFinding(
            _("compiler"),
            PROBLEM,
            _("{problem}; until then no kernel passes a check").format(problem=problem),
            remedy,
        )
    ]


def find_remedy(errors: str) -> str:
    if "Failed to find C compiler" in errors:
        return _(
            "Triton needs a C compiler on a GPU. Debian, Ubuntu: `sudo apt install gcc`; "
            "Fedora: `sudo dnf install gcc`."
        )
    if "Python.h" in errors:
        major, minor = sys.version_info[:2]
        return _(
            "Triton needs Python's C headers on a GPU. Debian, Ubuntu: `sudo apt install "
            "python{major}.{minor}-dev`."
        ).format(major=major, minor=minor)
    if "out of memory" in errors.lower():
        return _(
            "The GPU's memory is taken. `nvidia-smi` says by whom; `export "
            "COURSE_DEVICE=cpu` works meanwhile."
        )
    if "No space left on device" in errors:
        return _(
            "The disk is full: Triton keeps compiled kernels in ~/.triton; "
            "TRITON_CACHE_DIR moves that folder."
        )
    return join_sentences(
        install_again(),
        _("On a GPU, `export COURSE_DEVICE=cpu` tells whether the GPU is the cause."),
    )
