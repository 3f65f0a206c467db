"""The whole examination: every check, in reading order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from course_lib.base.translation import gettext as _
from course_lib.doctor import gpu, isolation, kernels, machine, packages, trials
from course_lib.doctor.findings import NOTE, DoctorFinding
from course_lib.doctor.trials import Trial

CANARY_SECONDS = 180.0
PROBE_SECONDS = 120.0
Check = Callable[[], Iterable[DoctorFinding]]


def examine() -> list[DoctorFinding]:
    """Return every finding, in reading order. Never raises; takes as long as two imports of
    PyTorch.

    If packages are missing, the checks that need them are left out: they would only report the same
    again.
    """
    complete = not packages.list_missing()
    before: list[tuple[str, Check]] = [
        (_("course folder"), lambda: machine.examine_folder(can_check=complete)),
        (_("system"), machine.examine_system),
        ("Python", packages.examine_python),
        (_("packages"), packages.examine_packages),
        (_("settings"), packages.examine_settings),
    ]
    after: list[tuple[str, Check]] = [
        (_("disk"), machine.examine_disk),
        (_("your files"), machine.examine_files),
    ]
    if not complete:
        return _collect([*before, *after])
    canary = Trial(trials.CANARY, CANARY_SECONDS)
    probe = Trial(trials.PROBE, PROBE_SECONDS)
    compiler = Trial(trials.COMPILER, CANARY_SECONDS)
    confinement = Trial(trials.CONFINEMENT, PROBE_SECONDS)
    tried: list[tuple[str, Check]] = [
        (_("torch and triton"), packages.examine_pair),
        ("GPU", lambda: gpu.examine_gpu(probe.report(), gpu.ask_nvidia_smi())),
        (_("kernels"), lambda: kernels.examine_kernels(canary)),
        (_("compiler"), lambda: kernels.examine_compiler(compiler)),
        (_("isolation"), lambda: isolation.examine_isolation(confinement.report())),
        (_("memory"), lambda: machine.examine_memory(probe.report())),
    ]
    try:
        return _collect([*before, *tried, *after])
    finally:
        for trial in (canary, probe, compiler, confinement):
            trial.stop()


def _collect(checks: Iterable[tuple[str, Check]]) -> list[DoctorFinding]:
    """Run the checks and return their findings. A remedy that an earlier finding has already is not
    repeated."""
    findings: list[DoctorFinding] = []
    for name, check in checks:
        try:
            findings += check()
        except Exception as error:
            problem = _("this check broke itself: {kind}: {error}").format(
                kind=type(error).__name__, error=error
            )
            findings.append(
                DoctorFinding(name, NOTE, problem, _("Report this line to the authors."))
            )
    remedies: set[str] = set()
    for number, finding in enumerate(findings):
        if finding.remedy in remedies:
            findings[number] = dataclasses.replace(finding, remedy=_("As said above."))
        elif finding.remedy:
            remedies.add(finding.remedy)
    return findings
