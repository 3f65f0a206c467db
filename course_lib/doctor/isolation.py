"""The isolation of checks: how well this machine can confine the code that they run."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.doctor.findings import NOTE, OK, DoctorFinding


def examine_isolation(facts: dict) -> list[DoctorFinding]:
    """Report how well a check can confine the code that it runs here.

    Args:
        facts: "tier", the isolation that works here; "why", for each better tier the reason why it
            does not.
    """
    tier, why = facts.get("tier"), facts.get("why", {})
    if tier is None:
        crash = facts.get("crash", _("it said nothing"))
        return [
            DoctorFinding(
                _("isolation"),
                NOTE,
                _("how checks are confined here could not be found out ({crash})").format(
                    crash=crash
                ),
                _("Report this line to the authors."),
            )
        ]
    # a reason that rules out both better tiers is stated once, for the lower one
    named = {reason: better for better, reason in why.items()}
    reasons = "; ".join(
        _("no {tier}: {reason}").format(
            tier=better[0].lower() + better[1:] if better != "Landlock" else better, reason=reason
        )
        for reason, better in named.items()
    )
    if not why:
        return [
            DoctorFinding(
                _("isolation"),
                OK,
                _("checks run in namespaces of their own, under Landlock, with limits"),
            )
        ]
    if tier == "Landlock":
        return [
            DoctorFinding(
                _("isolation"),
                OK,
                _("checks run under Landlock, with limits"),
                detail=(
                    _(
                        "{reasons}; for your own files this will do; before you grade other"
                        " people's, permit user namespaces (Ubuntu 24.04: `sudo sysctl "
                        "kernel.apparmor_restrict_unprivileged_userns=0`; in a container, its host "
                        "decides)"
                    ).format(reasons=reasons)
                ),
            )
        ]
    return [
        DoctorFinding(
            _("isolation"),
            NOTE,
            _(
                "checks run with limits only, which end a runaway and confine nobody ({reasons})"
            ).format(reasons=reasons),
            _(
                "For your own files this will do. Before you grade other people's: a kernel "
                "with Landlock (5.13 or newer, `landlock` in /sys/kernel/security/lsm) and "
                "the package landlockpy."
            ),
        )
    ]
