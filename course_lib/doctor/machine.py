"""The machine: its system, memory and disk, and the learner's files on it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding

GB = 1000**3


def examine_system() -> list[DoctorFinding]:
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    if name != "Linux":
        return [
            DoctorFinding(
                "system",
                PROBLEM,
                f"this is {name}, and there is no Triton for it",
                "Take WSL, the dev container or a hosted notebook"
                + ("." if paths.is_installed() else ': docs/setup.md, "Other systems".'),
            )
        ]
    system_text = f"Linux, {platform.machine()}, {os.cpu_count()} cores"
    if "microsoft" in platform.release().lower():
        system_text += ", under WSL"
    return [DoctorFinding("system", OK, system_text)]


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
                "memory",
                NOTE,
                f"{free / GB:.1f} GB available; grading starts a process of about 1 GB beside the"
                " notebook's",
                "Close other programs or notebooks.",
            )
        )
    if "gpu_free" in probe:
        gpu_free, gpu_total = probe["gpu_free"] / GB, probe["gpu_total"] / GB
        memory_text = f"{gpu_free:.1f} of {gpu_total:.1f} GB available on the GPU"
        if gpu_free < 2:
            findings.append(
                DoctorFinding(
                    "GPU memory",
                    NOTE,
                    memory_text,
                    "`nvidia-smi` lists who holds it; shut down notebooks that you no longer need.",
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
    disk_text = f"{free / GB:.1f} GB free here"
    if free < GB / 10:
        return [
            DoctorFinding(
                "disk",
                PROBLEM,
                disk_text,
                "Free at least 1 GB: your work cannot be saved on a full disk.",
            )
        ]
    if free < GB:
        return [DoctorFinding("disk", NOTE, disk_text, "Free at least 1 GB before you go on.")]
    return []


def examine_folder(can_check: bool) -> list[DoctorFinding]:
    """Report a missing course folder. With ``can_check`` this Python can check without one, as to
    grade a class, so it is only a note."""
    try:
        paths.exercises()
    except CourseError as nowhere:
        problem, _, remedy = str(nowhere).partition(". ")
        return [DoctorFinding("course folder", NOTE if can_check else PROBLEM, problem, remedy)]
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
                "your exercises",
                PROBLEM,
                f"there is no folder {paths.shown(folder)}",
                (
                    f"`course init {paths.find_folder()}` writes what is missing."
                    if paths.is_installed()
                    else "Take a full copy of the course; authors:"
                    " `python -m course_lib.authoring.exercises`."
                ),
            )
        )
    else:
        findings += _examine_writable("your exercises", folder)
    state = paths.state()
    existing = state
    while not existing.exists():  # the folder is made with the first verdict
        existing = existing.parent
    findings += _examine_writable("your progress", existing, state)
    return findings


def _examine_writable(
    name: str, folder: Path, real_folder: Path | None = None
) -> list[DoctorFinding]:
    folder_name = paths.shown(real_folder or folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return []
    except OSError as error:
        remedy = (
            f'Give the folder to yourself: `sudo chown -R "$USER" {folder}`, or copy the course to'
            " a folder of your own."
        )
        return [
            DoctorFinding(
                name, PROBLEM, f"{folder_name} cannot be written ({error.strerror})", remedy
            )
        ]
