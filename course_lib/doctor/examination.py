"""The whole examination: every check in the order in which to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from course_lib.doctor import gpu, isolation, kernels, machine, packages, trials
from course_lib.doctor.findings import NOTE, DoctorFinding
from course_lib.doctor.trials import Trial

CANARY_SECONDS = 180.0
PROBE_SECONDS = 120.0


def examine() -> list[DoctorFinding]:
    """Everything there is to find, in the order in which to read it. Never raises; takes as long as two imports of PyTorch."""
    canary = Trial(trials.CANARY, CANARY_SECONDS)
    probe = Trial(trials.PROBE, PROBE_SECONDS)
    compiler = Trial(trials.COMPILER, CANARY_SECONDS)
    confinement = Trial(trials.CONFINEMENT, PROBE_SECONDS)
    checks: list[tuple[str, Callable[[], Iterable[DoctorFinding]]]] = [
        ("system", machine.examine_system),
        ("Python", packages.examine_python),
        ("packages", packages.examine_packages),
        ("torch and triton", packages.examine_pair),
        ("settings", packages.examine_settings),
        ("GPU", lambda: gpu.examine_gpu(probe.report(), gpu.ask_nvidia_smi())),
        ("kernels", lambda: kernels.examine_kernels(canary)),
        ("compiler", lambda: kernels.examine_compiler(compiler)),
        ("isolation", lambda: isolation.examine_isolation(confinement.report())),
        ("memory", lambda: machine.examine_memory(probe.report())),
        ("disk", machine.examine_disk),
        ("your files", machine.examine_files),
        ("Chromium", machine.examine_chromium),
    ]
    findings: list[DoctorFinding] = []
    try:
        for name, check in checks:
            try:
                findings += check()
            except Exception as error:
                findings.append(
                    DoctorFinding(
                        name,
                        NOTE,
                        f"this check broke itself: {type(error).__name__}: {error}",
                        "Report this line to the authors.",
                    )
                )
    finally:
        for trial in (canary, probe, compiler, confinement):
            trial.stop()
    return findings
