"""The isolation of checks: how well this machine can confine the code that they run."""

from __future__ import annotations

from course_lib.doctor.findings import NOTE, OK, DoctorFinding


def examine_isolation(facts: dict) -> list[DoctorFinding]:
    """Report how well a check can confine the code that it runs here.

    Args:
        facts: "tier", the isolation that works here; "why", for each better tier the reason why it
            does not.
    """
    tier, why = facts.get("tier"), facts.get("why", {})
    if tier is None:
        crash = facts.get("crash", "it said nothing")
        return [
            DoctorFinding(
                "isolation",
                NOTE,
                f"how checks are confined here could not be found out ({crash})",
                "Report this line to the authors.",
            )
        ]
    # a reason that rules out both better tiers is stated once, for the lower one
    named = {reason: better for better, reason in why.items()}
    reasons = "; ".join(
        f"no {better[0].lower() + better[1:] if better != 'Landlock' else better}: {reason}"
        for reason, better in named.items()
    )
    if not why:
        return [
            DoctorFinding(
                "isolation",
                OK,
                "checks run in namespaces of their own, under Landlock, with limits",
            )
        ]
    if tier == "Landlock":
        return [
            DoctorFinding(
                "isolation",
                OK,
                "checks run under Landlock, with limits",
                detail=(
                    f"{reasons}; for your own files this will do; before you grade other people's,"
                    " permit user namespaces (Ubuntu 24.04: `sudo sysctl"
                    " kernel.apparmor_restrict_unprivileged_userns=0`; in a container, its host"
                    " decides)"
                ),
            )
        ]
    return [
        DoctorFinding(
            "isolation",
            NOTE,
            f"checks run with limits only, which end a runaway and confine nobody ({reasons})",
            "For your own files this will do. Before you grade other people's: a kernel with"
            " Landlock (5.13 or newer, `landlock` in /sys/kernel/security/lsm) and the package"
            " landlockpy.",
        )
    ]
