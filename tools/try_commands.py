"""Type every command that README, the guides and the hosted notebooks tell a newcomer, in an empty
account: `make commands`.

The account has a new home and a clone of this checkout's last commit; as root, it is that of an
ordinary user. COMMANDS says how each command is typed, in order, and UNTRIED why one is not. A test
compares both with the pages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import bootstrap
import installer
import nbformat
from try_package import ROOT, Learner, build, make_learner

PAGES = ("README.md", "docs/setup.md", "docs/commands.md", "docs/instructors.md")
NOTEBOOKS = ("notebooks/hosted/00_start_here.ipynb", "notebooks/hosted/half_hour_on_a_gpu.ipynb")
_FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
_PROGRAM = re.compile(
    r"\. \.venv/bin/activate$"
    r"|(?:[A-Z_]+=\S+"
    r" )*(?:\.venv/bin/)?(?:make|course|uvx?|pip|python[0-9.]*|jupyter|conda|sudo|export|unset|wsl|mv|git)\b(?![-./])"  # noqa: E501
)


def list_commands(text: str) -> list[str]:
    """Return the commands in a page: the lines of its shell blocks, and code in its prose that
    begins with a program's name."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = [
        line
        for language, block in _FENCE.findall(text)
        if language == "sh"
        for line in block.splitlines()
    ]
    spans = re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    return list(dict.fromkeys(line.strip() for line in [*lines, *spans] if _PROGRAM.match(line)))


def read_pages() -> dict[str, list[str]]:
    """Return the commands of each page and notebook that a newcomer reads, by its path."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    for name in NOTEBOOKS:
        cells = nbformat.read(ROOT / name, as_version=4).cells
        texts[name] = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {name: list_commands(text) for name, text in texts.items()}


def find_unknown(commands: list[str]) -> list[str]:
    """Return the commands that are neither typed nor listed as untried. A command without its
    arguments is a mention of the whole one."""
    known = [*(command.text for command in COMMANDS), *UNTRIED]
    return [
        each
        for each in commands
        if not any(whole == each or whole.startswith(f"{each} ") for whole in known)
    ]


@dataclass(frozen=True)
class Command:
    """A command as a page tells it, and how it is typed here."""

    text: str
    expects: str = ""  # in what it prints
    # the same with a name for each placeholder, or with what shows that it worked; empty: as it is
    # told
    typed: str = ""
    codes: tuple[int, ...] = (0,)
    folder: str = "clone"
    serves: bool = False  # it goes on until it is stopped: a server whose page has to answer
    settings: dict[str, str] = field(default_factory=dict)


_READY = "environment is ready"
_NOT_ATTEMPTED = (2,)
COMMANDS = [
    # a clone
    Command("make", "make COMMAND"),
    Command("make lab", serves=True, settings={"LAB_ARGS": "--no-browser"}),
    Command('make lab LAB_ARGS="--no-browser --port 8899"', serves=True),
    Command("make lab LAB_ARGS=--no-browser", serves=True),
    Command("make lab TORCH=cpu", serves=True, settings={"LAB_ARGS": "--no-browser"}),
    Command("python3 tools/bootstrap.py", _READY),
    Command(".venv/bin/course lab", typed=".venv/bin/course lab --no-browser", serves=True),
    Command(".venv/bin/python -m course_lib.doctor", "The course can run here."),
    Command("make dev", _READY),
    Command("make test", " passed", settings={"TEST_ARGS": "-k test_imports"}),
    Command(". .venv/bin/activate", "norms",
        typed=". .venv/bin/activate && course --version && echo norms"),
    Command("course", "00a"),
    Command("course check", "pass",
        typed="course check; course check 00a --file solutions/ex00a_*.py"),
    Command("course hint", "00a"),
    Command("course check 07a", "07a", codes=_NOT_ATTEMPTED),
    Command("course check 07", "07a", codes=_NOT_ATTEMPTED),
    Command("course check 07a 08a", "08a", codes=_NOT_ATTEMPTED),
    Command("course check 01a", "01a", codes=_NOT_ATTEMPTED),
    Command("course solution 07a", "layer_norm", typed="course solution 07a --yes"),
    Command("course reset 07a", "07a"),
    Command("course status", "00a"),
    Command("course status 07a", "07a"),
    Command("course status --html FILE.html",
        typed="course status --html status.html && test -s status.html"),
    Command("course bench --stored", "H100"),
    Command("course bench forward --stored", "H100"),
    Command("course bench --columns 4096 --rows 8192", "4096"),
    Command("course bench --columns N --rows M --dtype bf16 --norm rms_norm",
        typed="course bench --columns 1000 --rows 64 --dtype bf16 --norm rms_norm"),
    Command("course doctor", "The course can run here."),
    Command("course doctor --details", "isolation: "),
    Command("course export FILE.zip", typed="course export my-course.zip"),
    Command("course import FILE.zip", "progress", typed="course import my-course.zip"),
    Command("course update"),
    Command("make update"),
    # Of one command alone bash would become that command, and no shell would be above it.
    Command("course --install-completion", typed="course --install-completion && true"),
    Command("course --version", "triton "),
    Command("course --lang zh status", "练习"),
    Command("export COURSE_LANG=zh_CN", "练习", typed="export COURSE_LANG=zh_CN; course status"),
    Command("export COURSE_DEVICE=cpu", "COURSE_DEVICE=cpu forces",
        typed="export COURSE_DEVICE=cpu; course doctor"),
    Command("unset COURSE_DEVICE", "The course can run here.",
        typed="export COURSE_DEVICE=gpu; unset COURSE_DEVICE; course doctor"),
    Command("unset PIP_NO_INDEX", _READY,
        typed="export PIP_NO_INDEX=1; unset PIP_NO_INDEX; make env"),
    Command("course hunt", typed="course hunt --no-browser", serves=True),
    Command("course lab", typed="course lab --no-browser", serves=True),
    Command("jupyter lab", typed="jupyter lab --no-browser", serves=True),
    # instructors
    Command("python -m course_command doctor", "The course can run here."),
    Command("python -m course_lib.authoring.lesson_size", "18"),
    Command("make nbval", "passed", settings={"LESSONS": "00"}),
    Command("make nbval SOLVED=1", "passed", settings={"LESSONS": "00"}),
    Command("make nbval SOLVED=both", "passed", settings={"LESSONS": "00"}),
    Command('make nbval LESSONS="03 04" NBVAL_ARGS="--junitxml=build/nbval.xml"', "passed"),
    Command("course release ../course-for-the-class", "course-for-the-class"),
    Command("course release DIR", typed="course release ../another-class"),
    Command("course release --workflow DIR --week 3",
        typed="course release --workflow ../another-class --week 3"),
    Command("course grade submissions -o results --week 3", "verdicts kept",
        typed="mkdir -p submissions/ann && cp exercises/ex02a_* submissions/ann && course grade "
              "submissions -o results --week 3"),
    Command("course grade FOLDER -o OUT --week 3",
        typed="course grade submissions -o OUT --week 3"),
    Command('course grade results --show "Jane Doe" 07a', "04a",
        typed="cp solutions/ex04a_*.py submissions/ann && course grade submissions -o results "
              "--week 3 && course grade results --show ann 04a"),
    Command('course grade OUT --show "Jane Doe" 07a', "04a",
        typed="course grade results --show ann 04a"),
    Command("course check 07a --file PATH --json", '"07a"',
        typed="course check 07a --file solutions/ex07a_*.py --json"),
    Command('python -c "import secrets; print(secrets.token_hex(16))" > ../secret'
            " && chmod 600 ../secret"),
    Command(
        "course check 07a --file PATH --secret-file ../secret --require-tier namespaces",
        "07a",
        typed="course check 07a --file solutions/ex07a_*.py --secret-file ../secret --require-tier "
              "namespaces",
        codes=(0, 78),  # 78: this machine has no namespaces
    ),
    # the package
    Command("python3 -m pip wheel --no-deps .",
        typed="python3 -m pip wheel --no-deps . && ls norm_kernels_course-*.whl"),
    Command("uvx --from CLONE norm-kernels-course my-course", "my-course", folder="home"),
    Command("uvx --from CLONE norm-kernels-course COMMAND", "makes it and opens lesson 00",
        typed="uvx --from CLONE norm-kernels-course status", folder="home/my-course", codes=(78,)),
    Command("uvx --refresh --from CLONE norm-kernels-course update", "my-course",
        folder="home/my-course"),
    Command("python3 -m venv", typed="python3 -m venv environment", folder="home"),
    Command("pip install CLONE", folder="home"),
    Command("course init my-course", "my-course", folder="home"),
    Command("make clean", typed="make clean && test ! -e .venv"),
    Command("mv .venv .venv-other", _READY,
        typed="mkdir .venv; touch .venv/mine; ! make env && mv .venv .venv-other && make env"),
]  # fmt: skip
_NEEDS_GPU = "it needs a GPU"
_CHANGES_SYSTEM = "it changes the system, for which an account needs more rights"
_PROVEN_BY_PACKAGE = "`make package` does it"
_MORE_PYTHONS = (
    "it takes another Python, which this machine need not have; `make pins` proves the pins for"
    " each"
)
UNTRIED = {
    "TORCH=cpu course lab": (
        "`make package` makes that environment, and `course lab` is tried in the clone"
    ),
    "course env": _PROVEN_BY_PACKAGE,
    "course watch": _PROVEN_BY_PACKAGE,
    "course init my-course --newest": (
        "the first cell of a hosted notebook does it, which is tried below"
    ),
    'pip install "CLONE[lab]"': (
        "it may fetch PyTorch's CUDA build, several GB; `make package` grades from such an"
        " environment"
    ),
    "make lab TORCH=cuda": "it fetches several GB",
    "make lab PYTHON=python3.12": _MORE_PYTHONS,
    "uv python install 3.12": _MORE_PYTHONS,
    "make lab PYTHON=$(uv python find 3.12)": _MORE_PYTHONS,
    "wsl --install": "it is a command of Windows",
    "sudo apt install make python3 python3-venv": _CHANGES_SYSTEM,
    "sudo apt install gcc python3-dev": _CHANGES_SYSTEM,
    "sudo apt install python3.11-venv": _CHANGES_SYSTEM,
    "sudo apt install gcc": _CHANGES_SYSTEM,
    "sudo apt install python3-dev": _CHANGES_SYSTEM,
    "conda env create -f environment.yml": "conda is no package of Debian",
    "conda activate norm-kernels-course": "conda is no package of Debian",
    "export PIP_CERT=/path/to/ca.pem": "the file is that of somebody's company",
    "course bench forward": _NEEDS_GPU,
    "make nbval-gpu": _NEEDS_GPU,
    'make bundle BUNDLE_ARGS="build/bundle --python 3.11 --processor x86_64"': (
        "it fetches 100 MB more; tests/tools/test_bundle.py has its parts"
    ),
    "python3.11 tools/bundle.py install build/bundle": "it needs that bundle",
    "course author check ID": "it takes a minute and is for authors",
    "make lint": "it is for authors, and CI runs it",
}

_IN_ENVIRONMENT = re.compile(r"(course|jupyter|pip|python|(export|unset) COURSE_\w+)\b(?!3)")
_ADDRESS = re.compile(r"http://(?:localhost|127\.0\.0\.1):\d+/\S+")
_LONGEST = 900.0  # seconds of a command


class Account:
    """A newcomer with a clone in a new home."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.clone = learner.home / "clone"
        self.faults: list[str] = []
        learner.environment["PATH"] = f"{learner.home / 'bin'}{os.pathsep}{os.defpath}"

    def make_clone(self) -> None:
        """Clone this checkout's last commit, by way of a bare copy that the account can read."""
        origin = self.learner.home / "course.git"
        subprocess.run(
            ("git", "clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), str(origin)),
            check=True,
        )
        self.learner.take_over(origin)
        self.learner.run("git", "clone", "--quiet", origin, self.clone)

    def type_command(self, command: Command) -> None:
        """Run a command and print its seconds; note what is wrong with what it printed."""
        line = (command.typed or command.text).replace("CLONE", str(self.clone))
        folder = (
            self.clone
            if command.folder == "clone"
            else self.learner.home / command.folder.removeprefix("home").lstrip("/")
        )
        environment = ".venv" if command.folder == "clone" else "environment"
        if _IN_ENVIRONMENT.match(command.text):
            line = f". {environment}/bin/activate; {line}"
        settings = [f"{name}={value}" for name, value in command.settings.items()]
        started = time.monotonic()
        with self.learner.start(
            "env", *settings, "bash", "-c", line, cwd=folder, start_new_session=True
        ) as process:
            watchdog = threading.Timer(_LONGEST, os.killpg, (process.pid, signal.SIGKILL))
            watchdog.start()
            try:
                printed = "".join(
                    _read_until_served(process) if command.serves else process.stdout or ()
                )
            finally:
                seconds = time.monotonic() - started
                watchdog.cancel()
                if command.serves:
                    os.killpg(process.pid, signal.SIGKILL)
        print(f"commands: {seconds:6.1f} s  {command.text}", flush=True)
        wrong = (
            "its page did not answer" if command.serves and not printed.endswith(_SERVED) else ""
        )
        if not command.serves and process.returncode not in command.codes:
            wrong = f"it ended with {process.returncode}"
        if wrong or command.expects not in printed:
            self.faults.append(
                f"`{command.text}`:"
                f" {wrong or f'{command.expects!r} is not in what it printed'}:\n{printed[-3000:]}"
            )
            print("commands: that is a fault; the end of this run has its words", flush=True)


_SERVED = "\n(the page answered)\n"


def _read_until_served(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines of a server until it prints the address of its page, and then whether that
    answers."""
    for line in process.stdout or ():
        yield line
        if found := _ADDRESS.search(line):
            yield _SERVED if _answers(found[0]) else f"{found[0]} gave no answer\n"
            return


def _answers(address: str) -> bool:
    """Return whether a page answers within a minute. JupyterLab prints its address before it
    listens."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with opener.open(address, timeout=60) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False
        except OSError:
            time.sleep(0.2)
    return False


# Runs in the host's Python: run a notebook in a kernel of it, and print the last error and the
# seconds of each code cell.
_RUN_NOTEBOOK = """
import json, sys, time
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
notebook = nbformat.read(sys.argv[1], 4)
client = NotebookClient(notebook, timeout=600)
seconds, error = [], ""
with client.setup_kernel():
    for number, cell in enumerate(notebook.cells):
        began = time.monotonic()
        try:
            client.execute_cell(cell, number)
        except CellExecutionError as problem:
            error = problem.evalue
            break
        if cell.cell_type == "code":
            seconds.append(round(time.monotonic() - began, 1))
print(json.dumps([error, seconds, [str(cell.get("outputs", "")) for cell in notebook.cells]]))
"""


def try_notebooks(account: Account, wheel: Path) -> None:
    """Run the hosted notebooks on a host that has PyTorch, Triton and a kernel: without the
    package, and with its wheel beside them."""
    learner = account.learner
    host = learner.home / "host"
    python = host / "environment" / "bin" / "python"
    host.mkdir()
    for name in NOTEBOOKS:
        shutil.copy(ROOT / name, host)
    learner.take_over(host)
    learner.run("python3", "-m", "venv", python.parent.parent)
    settings = installer.read_pip_settings(sys.executable)
    places = [
        f"{name}={value}"
        for name, value in installer.uv_environment(settings).items()
        if name.startswith(("UV_", "SSL_"))
    ]
    backend = ("--torch-backend", "cpu") if bootstrap.choose_torch("cpu", settings)[1] else ()
    packages = (
        *backend,
        "--constraints",
        account.clone / "constraints.txt",
        "torch",
        "triton",
        "ipykernel",
        "nbclient",
    )
    learner.run(
        "env",
        *places,
        learner.home / "bin" / "uv",
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        *packages,
    )

    def run(name: str) -> tuple[str, list[float], str]:
        printed = learner.run(python, "-c", _RUN_NOTEBOOK, name, cwd=host)
        error, seconds, outputs = json.loads(printed.splitlines()[-1])
        print(f"commands: {name}: seconds of each cell: {seconds}", flush=True)
        return error, seconds, "\n".join(outputs)

    first, second = (Path(name).name for name in NOTEBOOKS)
    for name in (first, second):
        error, seconds, _ = run(name)
        if (
            not error.startswith("course: pip could not install")
            or seconds
            or (host / "my-course").exists()
        ):
            account.faults.append(
                f"{name} without the package: {error!r} after {len(seconds)} cells"
            )
    shutil.copy(wheel, host)
    solution = next((ROOT / "solutions").glob("ex00a_*.py"))
    with zipfile.ZipFile(host / "my-course.zip", "w") as packed:
        packed.write(solution, f"exercises/{solution.name}")
    exercise = host / "my-course" / "exercises" / solution.name
    for name in (first, second):
        error, _, outputs = run(name)
        if (
            error
            or "is from the zip" not in outputs
            or exercise.read_bytes() != solution.read_bytes()
        ):
            account.faults.append(
                f"{name} with the package: {error!r}; its outputs: {outputs[:3000]}"
            )
        exercise.write_text("# mine\n", encoding="utf-8")
    if not any(
        file.read_text(encoding="utf-8") == "# mine\n"
        for file in (host / "my-course" / ".course" / "kept").iterdir()
    ):
        account.faults.append("a file that the zip replaced was not kept")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="commands-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        account = Account(make_learner(folder / "home"))
        account.make_clone()
        for command in COMMANDS:
            account.type_command(command)
            uv = account.clone / ".venv" / "bin"
            # as a person has it who took the guide at its word
            if (uv / "uv").exists() and not (account.learner.home / "bin").exists():
                (account.learner.home / "bin").mkdir()
                for name in ("uv", "uvx"):
                    shutil.copy(uv / name, account.learner.home / "bin")
        try_notebooks(account, build(folder))
        print(f"commands: {len(account.faults)} faults" + ":" * bool(account.faults))
        print("\n".join(account.faults))
        return 1 if account.faults else 0


if __name__ == "__main__":
    sys.exit(main())
