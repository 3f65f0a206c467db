"""The GPU, as the driver's own tool sees it and as PyTorch can use it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from course_lib.base.installation import install_again, name_command
from course_lib.base.translation import gettext as _
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding
from course_lib.doctor.packages import find_other_package

# The oldest driver for each CUDA major version (NVIDIA, "CUDA Compatibility", minor version
# compatibility)
OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}


@dataclass(frozen=True)
class Card:
    """A GPU as nvidia-smi describes it."""

    name: str
    driver: str


def ask_nvidia_smi() -> list[Card] | str:
    """Return the machine's NVIDIA GPUs; an empty list if nvidia-smi is missing or sees none; a
    sentence if it fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _("nvidia-smi does not answer within 30 s")
    except OSError as error:
        return _("nvidia-smi cannot be started ({reason})").format(reason=error.strerror)
    printed = (process.stdout + process.stderr).strip()
    if process.returncode != 0:
        return next(iter(printed.splitlines()), "") or _(
            "nvidia-smi ended with exit code {code}"
        ).format(code=process.returncode)
    rows = [
        [field.strip() for field in line.split(",")]
        for line in process.stdout.splitlines()
        if "," in line
    ]
    return [Card(*row[:2]) for row in rows]


def examine_gpu(probe: dict, cards: list[Card] | str) -> list[DoctorFinding]:
    """Compare the driver's GPUs with those that PyTorch can use.

    Args:
        probe: the probe process's report on torch.
        cards: the result of :func:`ask_nvidia_smi`.
    """
    torch_ok, version = "torch" in probe, probe.get("torch", "")
    findings = []
    if "crash" in probe:
        name = "triton" if torch_ok else "torch"
        shadowing = find_other_package()
        remedy = (
            _(
                "`unset PYTHONPATH`, or move {shadowing} away: it stands before the installed"
                " package of that name."
            ).format(shadowing=shadowing)
            if shadowing
            else install_again()
        )
        findings.append(
            DoctorFinding(
                name, PROBLEM, _("does not import: {crash}").format(crash=probe["crash"]), remedy
            )
        )
    if isinstance(cards, str):
        findings.append(
            DoctorFinding(
                "GPU",
                NOTE,
                _("the GPU's driver does not work: {cards}").format(cards=cards),
                _(
                    "Restart the machine; if that does not help, install the driver again. CPU "
                    "mode works meanwhile."
                ),
            )
        )
        cards = []
    if not torch_ok:
        return findings
    if probe.get("available"):
        return [*findings, *_describe_usable(probe)]
    if not cards:
        if not findings:
            findings.append(
                DoctorFinding("GPU", OK, _("no GPU: kernels run in Triton's interpreter"))
            )
        return findings
    card = cards[0]
    card_text = _("{name} is here (driver {driver})").format(name=card.name, driver=card.driver)
    cuda = probe.get("cuda")
    if not cuda:
        remedy = _(
            "Unset PIP_EXTRA_INDEX_URL and PIP_INDEX_URL if they name PyTorch's CPU "
            "index, then `TORCH=cuda {command}`. CPU mode works meanwhile."
        ).format(command=name_command("env"))
        return [
            *findings,
            DoctorFinding(
                "GPU",
                NOTE,
                _("{card_text}, but torch {version} is a build without CUDA").format(
                    card_text=card_text, version=version
                ),
                remedy,
            ),
        ]
    needed = OLDEST_DRIVER.get(int(cuda.split(".")[0]))
    if needed is not None and _read_major(card.driver) < needed:
        remedy = _("Install driver {needed} or newer. CPU mode works meanwhile.").format(
            needed=needed
        )
        return [
            *findings,
            DoctorFinding(
                "GPU",
                NOTE,
                _(
                    "{card_text}, too old for torch {version}, which is built for CUDA {cuda}"
                ).format(card_text=card_text, version=version, cuda=cuda),
                remedy,
            ),
        ]
    why = probe.get("warning") or _("PyTorch gives no reason")
    remedy = _(
        "In a container, start it with the GPU (`docker run --gpus all`). Otherwise "
        "restart the machine. CPU mode works meanwhile."
    )
    return [
        *findings,
        DoctorFinding(
            "GPU",
            NOTE,
            _("{card_text}, but PyTorch cannot use it: {why}").format(card_text=card_text, why=why),
            remedy,
        ),
    ]


def _describe_usable(probe: dict) -> list[DoctorFinding]:
    name, (major, minor) = probe["name"], probe["capability"]
    if probe.get("hip"):
        return [
            DoctorFinding(
                "GPU",
                NOTE,
                _("{name} through ROCm; the course is tested on NVIDIA GPUs only").format(
                    name=name
                ),
                _("`export COURSE_DEVICE=cpu` if kernels fail."),
            )
        ]
    card_text = _("{name}, compute capability {major}.{minor}, CUDA {cuda}").format(
        name=name, major=major, minor=minor, cuda=probe["cuda"]
    )
    if major < 8:
        remedy = _("`export COURSE_DEVICE=cpu` if kernels fail.")
        return [
            DoctorFinding(
                "GPU",
                NOTE,
                _("{card_text}: Triton supports 8.0 and newer").format(card_text=card_text),
                remedy,
            )
        ]
    return [DoctorFinding("GPU", OK, card_text)]


def _read_major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match.group()) if match else 0
