"""The machine: its system, memory and disk, and the learner's files on it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding, split_message

GB = 1000**3


def examine_system() -> list[DoctorFinding]:
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    if name != "Linux":
        return [
            DoctorFinding(
                _("system"),
                PROBLEM,
                _("this is {name}, and there is no Triton for it").format(name=name),
                _("Take WSL, the dev container or a hosted notebook")
                + ("." if paths.is_installed() else ': docs/setup.md, "Other systems".'),
            )
        ]
    system_text = _("Linux, {machine}, {cores} cores").format(
        machine=platform.machine(), cores=os.cpu_count()
    )
    if "microsoft" in platform.release().lower():
        system_text += _(", under WSL")
    return [DoctorFinding(_("system"), OK, system_text)]


def examine_memory(probe: dict) -> list[DoctorFinding]:
    import psutil  # imported here: the earlier checks run without psutil

    free = psutil.virtual_memory().available
    limit = _read_container_limit()
    if limit is not None:
        free = min(free, limit)
    findings = []
    if free < 2 * GB:
        findings.append(
            DoctorFinding(
                _("memory"),
                NOTE,
                _(
                    "{free:.1f} GB available; grading starts a process of about 1 GB beside the "
                    "notebook's"
                ).format(free=free / GB),
                _("Close other programs or notebooks."),
            )
        )
    if "gpu_free" in probe:
        gpu_free, gpu_total = probe["gpu_free"] / GB, probe["gpu_total"] / GB
        memory_text = _("{gpu_free:.1f} of {gpu_total:.1f} GB available on the GPU").format(
            gpu_free=gpu_free, gpu_total=gpu_total
        )
        if gpu_free < 2:
            findings.append(
                DoctorFinding(
                    _("GPU memory"),
                    NOTE,
                    memory_text,
                    _(
                        "`nvidia-smi` lists who holds it; shut down notebooks that you no longer "
                        "need."
                    ),
                )
            )
    return findings


def _read_container_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes of memory that this container may still take (cgroup v2); None if there is
    no limit."""
    try:
        most = (root / "memory.max").read_text().strip()
        used = (root / "memory.current").read_text().strip()
    except OSError:
        return None
    return max(0, int(most) - int(used)) if most.isdigit() and used.isdigit() else None


def examine_disk() -> list[DoctorFinding]:
    free = shutil.disk_usage(paths.find_folder() or Path.cwd()).free
    disk_text = _("{free:.1f} GB free here").format(free=free / GB)
    if free < GB / 10:
        return [
            DoctorFinding(
                _("disk"),
                PROBLEM,
                disk_text,
                _("Free at least 1 GB: your work cannot be saved on a full disk."),
            )
        ]
    if free < GB:
        return [
            DoctorFinding(_("disk"), NOTE, disk_text, _("Free at least 1 GB before you go on."))
        ]
    return []


def examine_folder(can_check: bool) -> list[DoctorFinding]:
    """Report a missing course folder. With ``can_check`` this Python can check without one, as to
    grade a class, so it is only a note."""
    try:
        paths.exercises()
    except CourseError as nowhere:
        problem, remedy = split_message(str(nowhere))
        return [DoctorFinding(_("course folder"), NOTE if can_check else PROBLEM, problem, remedy)]
    return []


def examine_files() -> list[DoctorFinding]:
    """Report whether the learner's files and progress can be written."""
    findings = []
    try:
        folder = paths.exercises()
    except CourseError:
        return []  # examine_folder() reports this
    if not folder.is_dir():
        findings.append(
            DoctorFinding(
                _("your exercises"),
                PROBLEM,
                _("there is no folder {folder}").format(folder=paths.shown(folder)),
                (
                    _("`course init {folder}` writes what is missing.").format(
                        folder=paths.find_folder()
                    )
                    if paths.is_installed()
                    else _(
                        "Take a full copy of the course; authors: `python -m "
                        "course_lib.authoring.exercises`."
                    )
                ),
            )
        )
    else:
        findings += _examine_writable(_("your exercises"), folder)
    state = paths.state()
    existing = state
    while not existing.exists():  # the folder is made with the first verdict
        existing = existing.parent
    findings += _examine_writable(_("your progress"), existing, state)
    return findings


def _examine_writable(
    name: str, folder: Path, real_folder: Path | None = None
) -> list[DoctorFinding]:
    folder_name = paths.shown(real_folder or folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return []
    except OSError as error:
        remedy = _(
            'Give the folder to yourself: `sudo chown -R "$USER" {folder}`, or copy the '
            "course to a folder of your own."
        ).format(folder=folder)
        return [
            DoctorFinding(
                name,
                PROBLEM,
                _("{folder_name} cannot be written ({reason})").format(
                    folder_name=folder_name, reason=error.strerror
                ),
                remedy,
            )
        ]
