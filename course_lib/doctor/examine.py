"""`course doctor`: looks at the machine and the environment, and says what to do about what it finds.

Whatever may crash, hang or be missing (PyTorch, Triton, the GPU's driver) is tried in processes of its own, so that a
segmentation fault becomes a finding. Nothing of the course that needs PyTorch is imported here.

``python -m course_lib.doctor`` prints plain text, for an environment in which the ``course`` command cannot start.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from course_lib.base import paths

OK, NOTE, PROBLEM = "ok", "note", "problem"
GB = 1000**3

OLDEST_PYTHON = (3, 11)
# (torch, triton) as major.minor. The first is pinned; the second is tested too.
TESTED_PAIRS = (("2.13", "3.7"), ("2.11", "3.6"))
# What the lessons, the grader and the panels import; without one of them something a learner meets does not run.
NEEDED = ("torch", "triton", "numpy", "ml_dtypes", "matplotlib", "ipykernel", "ipywidgets", "psutil", "rich", "typer")
# What a hosted notebook may lack: the lessons run without it, and this is what does not.
USEFUL = {
    "jupyterlab": "`make lab` opens it; another notebook program will do",
    "landlockpy": "checks then run with resource limits only, which confine nobody",
}
# The oldest driver of each CUDA major version (NVIDIA, "CUDA Compatibility", minor version compatibility)
OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
CANARY_SECONDS = 180.0
PROBE_SECONDS = 120.0


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``remedy`` is empty where there is nothing to do."""

    name: str
    level: str  # OK, NOTE: the course runs all the same, PROBLEM: it does not
    what: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Everything there is to find, in the order in which to read it. Never raises; takes as long as two imports of PyTorch."""
    canary, probe, confinement = _Child(_CANARY, CANARY_SECONDS), _Child(_PROBE, PROBE_SECONDS), _Child(_CONFINEMENT, PROBE_SECONDS)
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("system", system),
        ("Python", python),
        ("packages", packages),
        ("torch and triton", pair),
        ("settings", settings),
        ("GPU", lambda: gpu(probe.report(), nvidia_smi())),
        ("kernels", lambda: kernels(canary)),
        ("isolation", lambda: isolation(confinement.report())),
        ("memory", lambda: memory(probe.report())),
        ("disk", disk),
        ("your files", your_files),
        ("Chromium", chromium),
    ]
    findings: list[Finding] = []
    try:
        for name, check in checks:
            try:
                findings += check()
            except Exception as error:
                findings.append(
                    Finding(name, NOTE, f"this check broke itself: {type(error).__name__}: {error}", "Report this line to the authors.")
                )
    finally:
        for child in (canary, probe, confinement):
            child.stop()
    return findings


def can_run(findings: Iterable[Finding]) -> bool:
    """True when nothing found keeps the course from running."""
    return all(finding.level != PROBLEM for finding in findings)


def as_text(findings: Iterable[Finding], width: int = 110) -> str:
    """The findings as plain text, one paragraph each, the remedy beneath."""
    marks = {OK: "ok     ", NOTE: "note   ", PROBLEM: "PROBLEM"}
    lines = []
    for finding in findings:
        lines += textwrap.wrap(f"{marks[finding.level]}  {finding.name}: {finding.what}", width, subsequent_indent=" " * 9)
        if finding.remedy:
            lines += textwrap.wrap(
                f"-> {finding.remedy}", width, initial_indent=" " * 9, subsequent_indent=" " * 12, break_on_hyphens=False
            )
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------
# Python and packages


def system() -> list[Finding]:
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    if name != "Linux":
        return [
            Finding(
                "system",
                PROBLEM,
                f"this is {name}, and there is no Triton for it",
                'README, "Other systems": WSL, dev container, hosted notebook.',
            )
        ]
    what = f"Linux, {platform.machine()}, {os.cpu_count()} cores"
    if "microsoft" in platform.release().lower():
        what += ", under WSL"
    return [Finding("system", OK, what)]


def python() -> list[Finding]:
    version = f"Python {platform.python_version()}"
    if sys.version_info < OLDEST_PYTHON:
        return [
            Finding(
                "Python",
                PROBLEM,
                f"{version}; the course needs 3.11 or newer",
                "`make lab PYTHON=python3.12` makes the environment with another.",
            )
        ]
    if sys.version_info >= (3, 13):
        return [Finding("Python", NOTE, f"{version}; tested are 3.11 and 3.12", "If something odd happens, `make lab PYTHON=python3.12`.")]
    return [Finding("Python", OK, f"{version} in {sys.prefix}")]


def tested_versions(text: str | None = None) -> dict[str, str]:
    """The versions of constraints.txt, by normalised package name; empty where the course is not a checkout."""
    if text is None:
        file = paths.ROOT / "constraints.txt"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {_normal(name): version for name, version in re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)", text)}


def packages() -> list[Finding]:
    """Each package that the course imports against the tested set; torch and triton have a check of their own."""
    tested = tested_versions()
    findings, good = [], 0
    for name in (*NEEDED, *USEFUL):
        have = _version(name)
        if have is None and name in USEFUL:
            findings.append(Finding(name, NOTE, f"not installed: {USEFUL[name]}", _install_again()))
        elif have is None:
            findings.append(Finding(name, PROBLEM, "not installed", _install_again()))
        elif name in ("torch", "triton"):
            continue
        elif _normal(name) in tested and have.split("+")[0] != tested[_normal(name)]:
            findings.append(Finding(name, NOTE, f"{have} is installed, {tested[_normal(name)]} was tested", _install_again()))
        else:
            good += 1
    if not tested:
        findings.append(
            Finding("packages", NOTE, "there is no constraints.txt here to compare versions with", "Work in a full copy of the course.")
        )
    return [*findings, Finding("packages", OK, f"{good} packages as tested")] if good else findings


def pair() -> list[Finding]:
    """PyTorch and Triton belong together: a CUDA build of torch names the one Triton that it works with."""
    torch, triton = _version("torch"), _version("triton")
    if torch is None or triton is None:
        return []  # said by packages()
    what = f"torch {torch}, triton {triton}"
    asked = _triton_that_torch_asks_for()
    if asked is not None and asked != triton:
        return [Finding("torch and triton", PROBLEM, f"{what}: this torch asks for triton {asked}", _install_again())]
    minors = (_minor(torch), _minor(triton))
    if minors not in TESTED_PAIRS:
        tested = " or ".join(f"torch {a} with triton {b}" for a, b in TESTED_PAIRS)
        return [Finding("torch and triton", NOTE, f"{what}: not a tested pair (tested: {tested})", _install_again())]
    return [Finding("torch and triton", OK, f"{what}, a tested pair")]


def _triton_that_torch_asks_for() -> str | None:
    for line in importlib.metadata.requires("torch") or []:
        match = re.match(r"triton\s*==\s*([^\s;]+)", line)
        if match and "extra" not in line:
            return match.group(1)
    return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _other_package() -> Path | None:
    """A file or folder on PYTHONPATH that Python would import in place of a package of the course."""
    folders = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    found = (folder / name for folder in folders for package in NEEDED for name in (f"{package}.py", package))
    return next((path for path in found if path.exists()), None)


def _install_again() -> str:
    if Path(sys.prefix).resolve() == (paths.ROOT / ".venv").resolve():
        return "`make clean env` makes the environment afresh; your exercises and progress stay."
    return "`pip install -c constraints.txt -e .` in the course's folder, or `make lab`, which makes an environment of its own."


# ----------------------------------------------------------------------------------------------------------------------
# Settings


def settings() -> list[Finding]:
    """Environment variables that decide how the course runs. Unset is the normal case and needs no line."""
    from course_lib.base import runtime

    findings = []
    device = os.environ.get("COURSE_DEVICE", "").strip()
    interpret = os.environ.get("TRITON_INTERPRET", "").strip()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if device.lower() in ("cpu", "gpu"):
        findings.append(
            Finding(
                "settings", NOTE, f"COURSE_DEVICE={device} forces {device.upper()} mode", "`unset COURSE_DEVICE` lets the course choose."
            )
        )
    elif device:
        findings.append(
            Finding("settings", PROBLEM, f"COURSE_DEVICE is {device!r}; it can be 'cpu', 'gpu' or unset", "`unset COURSE_DEVICE`")
        )
    if interpret and runtime.interpreter_was_asked_for():
        effect = (
            "the course goes by COURSE_DEVICE"
            if device
            else "it forces CPU mode"
            if interpret.lower() in _TRUE
            else "it has no effect on the course"
        )
        findings.append(
            Finding("settings", NOTE, f"TRITON_INTERPRET={interpret} is set; {effect}", "`unset TRITON_INTERPRET` lets the course choose.")
        )
    if visible is not None and visible.strip() in ("", "-1"):
        findings.append(
            Finding("settings", NOTE, f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU", "`unset CUDA_VISIBLE_DEVICES` shows them again.")
        )
    return findings


_TRUE = ("1", "true", "yes", "on", "y")


# ----------------------------------------------------------------------------------------------------------------------
# GPU


@dataclass(frozen=True)
class Card:
    """A GPU as the driver's own tool names it."""

    name: str
    driver: str
    capability: str = ""


def nvidia_smi() -> list[Card] | str:
    """The machine's NVIDIA GPUs; empty where the driver's tool is missing or sees none; a sentence where it fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return "nvidia-smi does not answer within 30 s"
    except OSError as error:
        return f"nvidia-smi cannot be started ({error.strerror})"
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        return next(iter(said.splitlines()), "") or f"nvidia-smi ended with exit code {done.returncode}"
    rows = [[field.strip() for field in line.split(",")] for line in done.stdout.splitlines() if line.count(",") >= 2]
    return [Card(*row[:3]) for row in rows]


def gpu(probe: dict, cards: list[Card] | str) -> list[Finding]:
    """What the driver sees against what PyTorch can use. ``probe`` is what the probe process printed about torch."""
    torch_ok, version = "torch" in probe, probe.get("torch", "")
    findings = []
    if "crash" in probe:
        name = "triton" if torch_ok else "torch"
        other = _other_package()
        remedy = (
            f"`unset PYTHONPATH`, or move {other} away: it stands before the installed package of that name." if other else _install_again()
        )
        findings.append(Finding(name, PROBLEM, f"does not import: {probe['crash']}", remedy))
    if isinstance(cards, str):
        findings.append(
            Finding(
                "GPU",
                NOTE,
                f"the GPU's driver does not work: {cards}",
                "Restart the machine; if that does not help, install the driver again. CPU mode works meanwhile.",
            )
        )
        cards = []
    if not torch_ok:
        return findings
    if probe.get("available"):
        return [*findings, *_usable(probe)]
    if not cards:
        if not findings:
            findings.append(
                Finding("GPU", OK, "none here: kernels run in Triton's interpreter, right and slow; every exercise can be done")
            )
        return findings
    card = cards[0]
    here = f"{card.name} is here (driver {card.driver})"
    cuda = probe.get("cuda")
    if not cuda:
        remedy = (
            "Unset PIP_EXTRA_INDEX_URL and PIP_INDEX_URL if they name PyTorch's CPU index, then `make clean env`. CPU mode works meanwhile."
        )
        return [*findings, Finding("GPU", NOTE, f"{here}, but torch {version} is a build without CUDA", remedy)]
    needed = OLDEST_DRIVER.get(int(cuda.split(".")[0]))
    if needed is not None and _major(card.driver) < needed:
        remedy = f"Install driver {needed} or newer. CPU mode works meanwhile."
        return [*findings, Finding("GPU", NOTE, f"{here}, too old for torch {version}, which is built for CUDA {cuda}", remedy)]
    why = probe.get("warning") or "PyTorch gives no reason"
    remedy = "In a container, start it with the GPU (`docker run --gpus all`). Otherwise restart the machine. CPU mode works meanwhile."
    return [*findings, Finding("GPU", NOTE, f"{here}, but PyTorch cannot use it: {why}", remedy)]


def _usable(probe: dict) -> list[Finding]:
    name, (major, minor) = probe["name"], probe["capability"]
    if probe.get("hip"):
        return [
            Finding(
                "GPU", NOTE, f"{name} through ROCm; the course is tested on NVIDIA GPUs only", "`export COURSE_DEVICE=cpu` if kernels fail."
            )
        ]
    what = f"{name}, compute capability {major}.{minor}, CUDA {probe['cuda']}"
    if (major, minor) < (7, 5):
        return [
            Finding(
                "GPU",
                NOTE,
                f"{what}: older than PyTorch's and Triton's builds support (7.5 and 8.0)",
                "`export COURSE_DEVICE=cpu` if kernels fail.",
            )
        ]
    if major < 8:
        return [
            Finding(
                "GPU",
                NOTE,
                f"{what}: Triton supports 8.0 and newer; bf16 has no hardware here",
                "`export COURSE_DEVICE=cpu` if kernels fail.",
            )
        ]
    return [Finding("GPU", OK, what)]


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match.group()) if match else 0


# ----------------------------------------------------------------------------------------------------------------------
# Kernels: the canary


_TOO_EARLY = "Something imports Triton before the course: a sitecustomize.py, a .pth file, or IPython's startup folder. Take it out."


def kernels(canary: _Child) -> list[Finding]:
    """Kernels with checked values, launched in a process of their own in the mode that the course chooses."""
    report = canary.report()
    if "refused" in report:  # said to whoever imports the course, who may be sent here for the remedy: so one of our own
        what, _, rest = report["refused"].partition(". ")
        remedy = "`unset COURSE_DEVICE` lets the course choose." if "COURSE_DEVICE" in what else _TOO_EARLY if "imported" in what else rest
        return [Finding("kernels", PROBLEM, what, remedy)]
    if "crash" in report:
        return [Finding("kernels", PROBLEM, f"a small kernel does not run: {report['crash']}", _kernel_remedy(canary.errors))]
    findings = []
    mode, triton = report["mode"], report["triton"]
    if triton != mode:
        what = f"Triton is set up for the {'interpreter' if triton == 'cpu' else 'GPU'}, and the course chose {mode.upper()} mode"
        findings.append(Finding("import order", PROBLEM, what, _TOO_EARLY))
    else:
        how = "interpreted" if mode == "cpu" else "compiled"
        findings.append(Finding("import order", OK, f"the choice is made before Triton is imported: kernels are {how}"))
    for loss in report.get("losses", []):
        findings.append(Finding("interpreter", NOTE, f"not corrected in this Triton: {loss}", _install_again()))
    if report["wrong"]:
        findings.append(Finding("kernels", PROBLEM, "small kernels give wrong results: " + "; ".join(report["wrong"]), _install_again()))
    else:
        findings.append(
            Finding(
                "kernels", OK, f"a masked copy and a row reduction give the right values in {mode.upper()} mode ({report['seconds']:g} s)"
            )
        )
    return findings


def _kernel_remedy(errors: str) -> str:
    if "Failed to find C compiler" in errors:
        return "Triton needs a C compiler on a GPU. Debian, Ubuntu: `sudo apt install gcc`; Fedora: `sudo dnf install gcc`."
    if "Python.h" in errors:
        major, minor = sys.version_info[:2]
        return f"Triton needs Python's C headers on a GPU. Debian, Ubuntu: `sudo apt install python{major}.{minor}-dev`."
    if "out of memory" in errors.lower():
        return "The GPU's memory is taken. `nvidia-smi` says by whom; `export COURSE_DEVICE=cpu` works meanwhile."
    if "No space left on device" in errors:
        return "The disk is full: Triton keeps compiled kernels in ~/.triton; TRITON_CACHE_DIR moves that folder."
    return _install_again() + " On a GPU, `export COURSE_DEVICE=cpu` tells whether the GPU is the cause."


# ----------------------------------------------------------------------------------------------------------------------
# Memory, disk, files


def memory(probe: dict) -> list[Finding]:
    try:
        import psutil
    except ImportError:
        return []  # said by packages()
    free = psutil.virtual_memory().available
    limit = _container_limit()
    if limit is not None:
        free = min(free, limit)
    findings = []
    if free < 2 * GB:
        findings.append(
            Finding(
                "memory",
                NOTE,
                f"{free / GB:.1f} GB available; grading starts a process of about 1 GB beside the notebook's",
                "Close other programs or notebooks.",
            )
        )
    else:
        findings.append(Finding("memory", OK, f"{free / GB:.1f} GB available"))
    if "gpu_free" in probe:
        gpu_free, gpu_total = probe["gpu_free"] / GB, probe["gpu_total"] / GB
        what = f"{gpu_free:.1f} of {gpu_total:.1f} GB available on the GPU"
        if gpu_free < 2:
            findings.append(
                Finding("GPU memory", NOTE, what, "`nvidia-smi` lists who holds it; shut down notebooks that you no longer need.")
            )
        else:
            findings.append(Finding("GPU memory", OK, what))
    return findings


def _container_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that this container may still take (cgroup v2), or None where there is no limit."""
    try:
        most, used = (root / "memory.max").read_text().strip(), (root / "memory.current").read_text().strip()
    except OSError:
        return None
    return max(0, int(most) - int(used)) if most.isdigit() and used.isdigit() else None


def disk() -> list[Finding]:
    free = shutil.disk_usage(paths.ROOT).free
    what = f"{free / GB:.1f} GB free in the course's folder"
    if free < GB / 10:
        return [Finding("disk", PROBLEM, what, "Free at least 1 GB: your work cannot be saved on a full disk.")]
    if free < GB:
        return [Finding("disk", NOTE, what, "Free at least 1 GB before you go on.")]
    return [Finding("disk", OK, what)]


def isolation(facts: dict) -> list[Finding]:
    """How well a check can confine what it runs here. ``facts``: "tier", and "why" for each better tier the reason against it."""
    tier, why = facts.get("tier"), facts.get("why", {})
    if tier is None:
        said = facts.get("crash", "it said nothing")
        return [
            Finding("isolation", NOTE, f"how checks are confined here could not be found out ({said})", "Report this line to the authors.")
        ]
    named = {reason: better for better, reason in why.items()}  # what stands against both tiers is said once, of the lower
    reasons = "; ".join(
        f"no {better[0].lower() + better[1:] if better != 'Landlock' else better}: {reason}" for reason, better in named.items()
    )
    if not why:
        return [Finding("isolation", OK, "checks run in namespaces of their own, under Landlock, with limits")]
    if tier == "Landlock":
        return [
            Finding(
                "isolation",
                NOTE,
                f"checks run under Landlock, with limits ({reasons})",
                "For your own files this will do. Before you grade other people's: permit user namespaces (Ubuntu 24.04: "
                "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in a container, its host decides).",
            )
        ]
    return [
        Finding(
            "isolation",
            NOTE,
            f"checks run with limits only, which end a runaway and confine nobody ({reasons})",
            "For your own files this will do. Before you grade other people's: a kernel with Landlock (5.13 or newer, `landlock` in "
            "/sys/kernel/security/lsm) and the package landlockpy (`pip install -c constraints.txt landlockpy`).",
        )
    ]


def your_files() -> list[Finding]:
    """Whether the learner's files and progress can be written."""
    findings = []
    folder = paths.exercises()
    if not folder.is_dir():
        findings.append(
            Finding(
                "your exercises",
                PROBLEM,
                f"there is no folder {paths.shown(folder)}",
                "Take a full copy of the course; authors: `make exercises`.",
            )
        )
    else:
        findings.append(_writable("your exercises", folder))
    state = paths.state()
    existing = state
    while not existing.exists():  # made when the first verdict is kept
        existing = existing.parent
    findings.append(_writable("your progress", existing, state))
    return findings


def _writable(name: str, folder: Path, meant: Path | None = None) -> Finding:
    shown = paths.shown(meant or folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding(name, OK, f"kept in {shown}, which can be written")
    except OSError as error:
        remedy = f'Give the folder to yourself: `sudo chown -R "$USER" {folder}`, or copy the course to a folder of your own.'
        return Finding(name, PROBLEM, f"{shown} cannot be written ({error.strerror})", remedy)


def chromium() -> list[Finding]:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return [Finding("Chromium", OK, "found: the browser test can run (authors only)")]
    return [
        Finding(
            "Chromium",
            NOTE,
            "not found: `make test` leaves the browser test out. Learners do not need it",
            "Authors on Debian: `sudo apt install chromium`.",
        )
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Trying things in a process of its own

_PROBE = """
import json, warnings
def say(**facts): print(json.dumps(facts), flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
    say(torch=torch.__version__, cuda=torch.version.cuda, hip=getattr(torch.version, "hip", None))
    import triton
    say(triton=triton.__version__)
    available = torch.cuda.is_available()
say(available=available, warning=next((str(w.message).splitlines()[0] for w in caught if "CUDA" in str(w.message)), ""))
if available:
    say(name=torch.cuda.get_device_name(0), capability=torch.cuda.get_device_capability(0))
    free, total = torch.cuda.mem_get_info()
    say(gpu_free=free, gpu_total=total)
"""

_CANARY = """
import json
import course_lib
from course_lib.base.errors import CourseError
try:
    course_lib.MODE
except CourseError as error:
    print(json.dumps({"refused": str(error)}), flush=True)
else:
    from course_lib.doctor import canary
    print(json.dumps(canary.run()), flush=True)
"""

_CONFINEMENT = f"""
import runpy, sys
sys.argv = ["server.py", {str(paths.ROOT)!r}, "probe"]
runpy.run_path({str(paths.ROOT / "course_lib" / "grading" / "sandbox" / "server.py")!r}, run_name="__main__")
"""


class _Child:
    """A script in a process group of its own, started at once and waited for when its report is wanted."""

    def __init__(self, code: str, seconds: float) -> None:
        self.seconds = seconds
        self.errors = ""
        self._facts: dict | None = None
        # files, not pipes: a grandchild that lives on would keep a pipe open and the reader waiting
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 closed by stop()
        path = os.pathsep.join([str(paths.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "COURSE_DEFER_CHOICE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    def report(self) -> dict:
        """What the script printed, one JSON object a line, merged. ``crash`` says in words how it ended, if not well."""
        if self._facts is None:
            self._facts = self._collect()
        return self._facts

    def stop(self) -> None:
        """End whatever still runs and close the files."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._out.close()
        self._err.close()

    def _collect(self) -> dict:
        try:
            code: int | None = self._process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            code = None
        facts: dict = {}
        for line in _text(self._out).splitlines():
            if line.startswith("{"):
                facts.update(json.loads(line))
        self.errors = _text(self._err)
        if code is None:
            facts["crash"] = f"no answer within {self.seconds:g} s"
        elif code < 0:
            facts["crash"] = f"its process was ended by {signal.Signals(-code).name}"
        elif code > 0:
            last = [line for line in self.errors.splitlines() if line.strip()]
            facts["crash"] = last[-1].strip() if last else f"its process ended with exit code {code}"
        return facts


def _text(file) -> str:
    file.seek(0)
    return file.read()[-65536:].decode("utf-8", "replace")


def main(arguments: list[str]) -> int:
    """Plain text on stdout; ``--line`` prints the one line about the mode. Returns 0 if the course can run, else 1."""
    if arguments == ["--line"]:
        from course_lib.base import runtime
        from course_lib.base.errors import CourseError

        try:
            print(runtime.current().line())
        except CourseError as error:
            print(f"course: {error}", file=sys.stderr)
            return 1
        return 0
    findings = examine()
    print(as_text(findings))
    return 0 if can_run(findings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
