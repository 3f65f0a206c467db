"""Whether this machine can hold the course: its system, its Python, its disk. Every refusal says
what to do.

Standard library only, and readable by Python 3.6, as ``bootstrap.py`` explains.
"""

import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import textwrap

from translation import gettext as _
from translation import mark as N_

# As in sys.version_info: a release candidate is older than its release. Triton's compiler crashes
# with 3.11.0rc1, Ubuntu 22.04's python3.11.
OLDEST, NEWEST_TESTED = (3, 11, 0, "final"), (3, 14)
CANDIDATES = ("python3.13", "python3.12", "python3.11")
ARCHITECTURES = ("x86_64", "aarch64")
OLDEST_GLIBC = (2, 28)  # what the wheels of PyTorch and Triton are built for
GB = 1000**3
NEEDED_GB = {"cpu": 3, "cuda": 7}  # the environment (1.9 and 5.1 GB) and what is unpacked meanwhile
GPU_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
OTHER_SYSTEMS = N_('docs/setup.md, "Other systems", says how.')


class Stop(Exception):
    """What happened and what to do about it, in words."""


def say(text, stream=None):
    """Print it as the course's words. On a terminal, lines break between words; a Chinese text is
    left to the terminal, because it has no spaces and its characters take two columns."""
    stream = stream or sys.stdout
    lines = ("course: " + text).split("\n")
    if stream.isatty() and not re.search("[\u2e80-\uffef]", text):
        width = max(shutil.get_terminal_size().columns, 40)
        lines = [
            part
            for line in lines
            for part in textwrap.wrap(
                line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        ]
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def ask(python, code, env=None):
    """What ``python -c code`` prints, or None if it does not run or fails."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", code],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env,
            timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def check_platform():
    """Raises Stop where PyTorch and Triton are not published for this system."""
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    libc, version = platform.libc_ver()
    if name != "Linux":
        raise Stop(
            _(
                "there is no Triton for {system}, and the lessons need it. Open this folder in WSL"
                " (Windows), in the dev container, or on a hosted notebook; {other_systems}"
            ).format(system=name, other_systems=_(OTHER_SYSTEMS))
        )
    if platform.machine() not in ARCHITECTURES:
        raise Stop(
            _(
                "this processor is {processor}; PyTorch and Triton are published for x86_64 and"
                " aarch64 only. Use another machine or a hosted notebook; {other_systems}"
            ).format(processor=platform.machine(), other_systems=_(OTHER_SYSTEMS))
        )
    if struct.calcsize("P") != 8:
        raise Stop(
            _(
                "this Python is a 32-bit program; PyTorch needs a 64-bit one. Name another: `make"
                " lab PYTHON=python3.12`."
            )
        )
    if (
        libc != "glibc"
        or tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_GLIBC
    ):
        has = (
            "glibc " + version
            if libc == "glibc"
            else _("another C library than glibc (Alpine, perhaps)")
        )
        raise Stop(
            _(
                "this Linux has {library}; PyTorch needs glibc 2.28 or newer (Debian 10, Ubuntu"
                " 20.04, RHEL 8). Use such a system or the dev container; {other_systems}"
            ).format(library=has, other_systems=_(OTHER_SYSTEMS))
        )


def find_other_python():
    """A Python on PATH that can make the environment, or None. A name on PATH proves nothing
    (pyenv's shims), so each is run."""
    code = (
        "import sys, venv, ensurepip; sys.exit(sys.version_info < %r or sys.implementation.name !="
        " 'cpython')" % (OLDEST,)
    )
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(folder, name) for name in CANDIDATES for folder in folders]
    return next(
        (path for path in paths if os.path.isfile(path) and ask(path, code) is not None), None
    )


def check_python(asked, argv):
    """Return if this Python will do; else start again with one on PATH that will, unless the person
    named this one (``asked``). ``argv`` starts the set-up anew."""
    name = "Python %s (%s)" % (platform.python_version(), sys.executable)
    if sys.version_info < OLDEST:
        wrong = _(
            "{python} is too old: the course needs 3.11.0 or newer, and no release candidate of it."
        ).format(python=name)
        remedy = _(
            "Install one (Debian, Ubuntu: `sudo apt install python3.12 python3.12-venv`, or"
            " python3.11; Fedora: `sudo dnf install python3.12`),\n  then name it: `make lab"
            " PYTHON=python3.12`. Ubuntu 22.04 has none: install uv\n "
            " (https://docs.astral.sh/uv/), `uv python install 3.12`, then `make lab PYTHON=$(uv"
            " python find 3.12)`."
        )
    elif sys.implementation.name != "cpython":
        wrong = _("{python} is {implementation}: PyTorch is published for CPython only.").format(
            python=name, implementation=sys.implementation.name
        )
        remedy = _("Name one: `make lab PYTHON=python3.12`.")
    else:
        try:
            import ensurepip  # noqa: F401
            import venv  # noqa: F401
        except ImportError as error:
            wrong = _(
                "{python} has no module {module} and cannot make an environment: Debian and Ubuntu"
                " ship it apart."
            ).format(python=name, module=error.name)
            remedy = _(
                "`sudo apt install python{version}-venv`, then run the same command again."
            ).format(version="%d.%d" % sys.version_info[:2])
        else:
            if sys.version_info[:2] > NEWEST_TESTED:
                say(
                    _(
                        "the course was tested with Python 3.11 to {newest}, and this is {python}."
                        " Going on."
                    ).format(newest="%d.%d" % NEWEST_TESTED, python=name)
                )
            return
    better = None if asked else find_other_python()
    if better is None:
        raise Stop("%s\n  %s" % (wrong, remedy))
    say(_("{wrong} Taking {python} instead.").format(wrong=wrong, python=better))
    os.execv(better, [better, *argv])


def check_disk(folder, build):
    free = shutil.disk_usage(os.path.realpath(folder)).free / GB
    if free < NEEDED_GB[build]:
        why = _(
            "{free} GB are free here, and the environment needs {needed} GB with PyTorch's {build}"
            " build. Free some, or make .venv a link to a folder on a larger disk (`mkdir"
            " /large/venv && ln -s /large/venv .venv`)."
        ).format(free="%.1f" % free, needed=NEEDED_GB[build], build=build.upper())
        smaller = _("Without a GPU the CPU build is enough: `make lab TORCH=cpu` needs 3 GB.")
        raise Stop(why + "\n  " + smaller if build == "cuda" else why)
