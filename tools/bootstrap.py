"""Makes the course's environment in ``.venv``: `make lab`, `make test` and the rest run this first.

Standard library only, and written so that Python 3.6 can read it: an old Python has to get as far as the sentence
that says it is too old. A second run finds the stamp and is done in a fraction of a second.

What may happen half-way, and what is done about it:
    killed, power cut       the stamp is written last, a marker first: the next run sees the marker and starts afresh
    two runs at once        a lock that pip holds too, so that even an orphaned pip is waited for
    pip fails               its output is shown as it comes and read at the same time; the cause is named at the end
"""

import argparse
import errno
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

OLDEST = (3, 11)
NEWEST_TESTED = (3, 12)
CANDIDATES = ("python3.12", "python3.11", "python3.13")
ARCHITECTURES = ("x86_64", "aarch64")
OLDEST_GLIBC = (2, 28)  # what the wheels of PyTorch and Triton are built for
GB = 1000**3
DISK = {"cpu": 3.0, "cuda": 9.0}  # GB for the finished environment and what pip keeps of the downloads
GPU_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")

STAMP = ".course-stamp"
MARKER = ".course-building"
LOCK = ".venv.lock"


class Stop(Exception):
    """What happened and what to do about it, in words."""


def say(text):
    print("course: " + text, flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Is there anything to do?


def wanted(root):
    """The hash over the files that decide what is installed."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(root, name), "rb") as file:
            digest.update(file.read() + b"\0")
    return digest.hexdigest()


def read_stamp(venv):
    """What was installed and for which place, or None where no complete environment stands."""
    try:
        with open(os.path.join(venv, STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def python_version(python):
    """'3.11' for the interpreter at this path, or None if it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [python, "-I", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = done.stdout.decode("ascii", "replace").strip()
    return found if done.returncode == 0 and re.match(r"^\d+\.\d+$", found) else None


def standing(root, asked=None):
    """How ``.venv`` stands: (state, stamp), with state one of

    ready, outdated (pins changed), half-made, foreign (nobody stamped it), moved, broken, other-python, absent.
    ``asked`` is the Python version that the person named, '3.12'; None keeps whatever the environment has.
    """
    venv = os.path.join(root, ".venv")
    stamp = read_stamp(venv)
    if stamp is None:
        if os.path.lexists(os.path.join(venv, MARKER)):
            return "half-made", None
        return ("foreign" if os.path.isdir(venv) and os.listdir(venv) else "absent"), None
    if stamp.get("place") != os.path.realpath(venv):
        return "moved", stamp  # its scripts name the old folder: they would run the other checkout's code
    has = python_version(venv_python(root))
    if has is None or has != stamp.get("python"):
        return "broken", stamp
    if asked is not None and asked != has:
        return "other-python", stamp
    return ("ready" if stamp.get("files") == wanted(root) else "outdated"), stamp


def venv_python(root):
    return os.path.join(root, ".venv", "bin", "python")


# ---------------------------------------------------------------------------------------------------------------------
# Can this machine do it?


def check_platform():
    system = platform.system()
    if system != "Linux":
        name = {"Darwin": "macOS"}.get(system, system)
        raise Stop(
            "there is no Triton for %s, and the lessons need it. Open this folder in WSL (Windows), in the dev container, "
            'or on a hosted notebook; README, "Other systems", says how.' % name
        )
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Stop(
            "this processor is %s; PyTorch and Triton are published for %s only. Use another machine or a hosted notebook; "
            'README, "Other systems", says how.' % (machine, " and ".join(ARCHITECTURES))
        )
    if struct.calcsize("P") != 8:
        raise Stop("this Python is a 32-bit program; PyTorch needs a 64-bit one. Name another: `make lab PYTHON=python3.12`.")
    name, version = platform.libc_ver()
    if name != "glibc":
        raise Stop(
            "this Linux is not built on glibc (Alpine, perhaps); PyTorch and Triton are published for glibc only. "
            'Use Debian, Ubuntu, Fedora or the dev container; README, "Other systems".'
        )
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_GLIBC:
        raise Stop(
            "this Linux has glibc %s; PyTorch needs 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8). "
            'Use a newer system or the dev container; README, "Other systems".' % version
        )


def can_build(python):
    """True if this interpreter is new enough, is CPython and can make an environment with pip in it."""
    code = (
        "import sys, venv, ensurepip; "
        "sys.exit(0 if sys.version_info >= %r and sys.implementation.name == 'cpython' and sys.maxsize > 2**32 else 1)" % (OLDEST,)
    )
    try:
        return (
            subprocess.run(
                [python, "-I", "-c", code],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                timeout=60,
                check=False,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def other_python():
    """The path of a Python on PATH that can do it, or None. A name on PATH proves nothing (pyenv's shims), so each is run."""
    for name in CANDIDATES:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and not os.path.isdir(path) and can_build(path):
                return path
    return None


def check_python(asked, argv):
    """Go on with this Python, or start again with a better one. Returns only if this one will do.

    ``asked`` is True when the person named this Python: then no other is taken in its place.
    """
    name = "Python %d.%d.%d (%s)" % (sys.version_info[0], sys.version_info[1], sys.version_info[2], sys.executable)
    have = "%d.%d" % sys.version_info[:2]
    if sys.version_info < OLDEST:
        better = None if asked else other_python()
        if better is not None:
            say("%s is too old for the course; taking %s instead." % (name, better))
            sys.stdout.flush()
            os.execv(better, [better, os.path.abspath(__file__), *argv])
        raise Stop(
            "this is %s; the course needs Python 3.11 or newer%s.\n"
            "  Install one (Debian, Ubuntu: `sudo apt install python3.12 python3.12-venv`, or python3.11; "
            "Fedora: `sudo dnf install python3.12`),\n"
            "  then name it: `make lab PYTHON=python3.12`. With conda: `conda env create -f environment.yml`."
            % (name, "" if asked else ", and none that can be used is on PATH (looked for %s)" % ", ".join(CANDIDATES))
        )
    if sys.implementation.name != "cpython":
        raise Stop(
            "this is %s; PyTorch is published for CPython only. Name another: `make lab PYTHON=python3.12`." % sys.implementation.name
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        better = None if asked else other_python()
        if better is not None:
            say("%s lacks the module %s; taking %s instead." % (name, error.name, better))
            sys.stdout.flush()
            os.execv(better, [better, os.path.abspath(__file__), *argv])
        raise Stop(
            "%s has no module %s, so it cannot make an environment. Debian and Ubuntu ship it separately:\n"
            "  `sudo apt install python%s-venv`, then run the same command again." % (name, error.name, have)
        ) from error
    if sys.version_info[:2] > NEWEST_TESTED:
        say(
            "Python %s is newer than the course was tested with (3.11 and 3.12). Going on; if pip finds no torch or triton for it, "
            "name an older one: `make lab PYTHON=python3.12`." % have
        )


# ---------------------------------------------------------------------------------------------------------------------
# What will pip fetch, and is there room for it?


def pip_settings(python):
    """pip's settings from its files and the environment: {'extra-index-url': '...', 'no-index': '1', ...}."""
    done = subprocess.run(
        [python, "-m", "pip", "config", "list"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=clean_environment(), timeout=60, check=False,
    )  # fmt: skip
    settings = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        match = re.match(r"^(?P<where>[^=]+?)\.(?P<key>[a-z-]+)='(?P<value>.*)'$", line)
        if match:
            key = match.group("key")
            settings[key] = (settings.get(key, "") + " " + match.group("value")).strip()
    return settings


def expected_build(settings, torch_version, python_tag):
    """'cpu', 'cuda' or 'unknown': the build of PyTorch that pip will take, as far as its settings tell.

    PyTorch's CPU index ends in /cpu; a folder with wheels is looked into. The default index has the CUDA build for
    x86_64. A mirror or another architecture tells nothing.
    """
    places = " ".join(settings.get(key, "") for key in ("index-url", "extra-index-url", "find-links")).replace("\\n", " ").split()
    for place in places:
        if place.rstrip("/").endswith("/cpu"):
            return "cpu"
        folder = place[len("file://") :] if place.startswith("file://") else place
        if glob.glob(os.path.join(glob.escape(folder), "torch-%s+cpu-%s-*" % (torch_version, python_tag))):
            return "cpu"
    if settings.get("index-url") or settings.get("no-index") or platform.machine() != "x86_64":
        return "unknown"
    return "cuda"


def free_space(root):
    venv = os.path.join(root, ".venv")
    return shutil.disk_usage(os.path.realpath(venv) if os.path.isdir(venv) else root).free


def check_disk(root, build):
    """Stop if the environment cannot fit; warn where it is not known which build of PyTorch comes."""
    free = free_space(root)
    least, most = DISK["cpu"] * GB, DISK["cuda"] * GB
    advice = (
        "Free some, move this folder to a larger disk, or make `.venv` a link to a folder on one "
        "(`mkdir /large/venv && ln -s /large/venv .venv`)."
    )
    if build == "cuda" and least <= free < most:
        raise Stop(
            "%.1f GB are free here, and PyTorch's CUDA build with its libraries takes about %.0f GB. %s\n"
            '  Without a GPU the CPU build is enough, and %.1f GB will do: README, "The CPU build of PyTorch".'
            % (free / GB, DISK["cuda"], advice, DISK["cpu"])
        )
    if free < least:
        raise Stop("%.1f GB are free here; the environment takes %.1f GB with PyTorch's CPU build. %s" % (free / GB, DISK["cpu"], advice))
    if build == "unknown" and free < most:
        say(
            "%.1f GB are free here. That is enough for PyTorch's CPU build; if your package index holds the CUDA build, %.0f GB are needed."
            % (free / GB, DISK["cuda"])
        )


def announce(build):
    if build == "cpu":
        say("pip will fetch about 0.6 GB (PyTorch's CPU build, Triton, JupyterLab and what they need): 2.2 GB on disk.")
        return
    which = "PyTorch's CUDA build" if build == "cuda" else "PyTorch, in the build that your package index holds"
    say("pip will fetch %s, Triton, JupyterLab and what they need: several GB with CUDA, up to %.0f GB on disk." % (which, DISK["cuda"]))
    if not any(os.path.exists(file) for file in GPU_FILES):
        say(
            'this machine shows no GPU. The CPU build is a fraction of that size: Ctrl-C and README, "The CPU build of PyTorch", '
            "if you want it."
        )


# ---------------------------------------------------------------------------------------------------------------------
# pip, shown as it works and read at the same time


def clean_environment():
    """The environment for pip and for the check: nothing from outside may shadow what is installed."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    }
    env["PIP_USER"] = "0"
    if env.get("PIP_RETRIES") == "0":  # pip names a broken connection only when it tries again
        env["PIP_RETRIES"] = "1"
    return env


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Listener:
    """Takes output in pieces, passes it on at once, keeps the last lines as plain text."""

    KEEP = 2000

    def __init__(self, out):
        self.out = out
        self.rest = b""
        self.lines = []

    def feed(self, data):
        self.out.write(data)
        self.out.flush()
        # a progress bar redraws its line with \r; each drawing would be a line of its own
        parts = (self.rest + data).replace(b"\r\n", b"\n").split(b"\n")
        self.rest = parts.pop()[-8192:]
        for part in parts:
            self.lines.append(_CONTROL.sub("", part.decode("utf-8", "replace").rsplit("\r", 1)[-1]))
        del self.lines[: -self.KEEP]

    def text(self):
        return "\n".join([*self.lines, _CONTROL.sub("", self.rest.decode("utf-8", "replace"))])


def stream(command, cwd, env, keep_open=(), out=None):
    """Run ``command``, show its output live, return (exit code, output). On a terminal it runs under a terminal of its
    own, which keeps pip's progress bar. ``keep_open`` are file descriptors that the child inherits: the lock."""
    out = out or getattr(sys.stdout, "buffer", None)
    listener = Listener(out)
    if sys.stdout.isatty():
        import fcntl
        import pty
        import termios

        reader, writer = pty.openpty()
        try:  # the bar is drawn as wide as the window
            fcntl.ioctl(writer, termios.TIOCSWINSZ, fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8))
        except OSError:
            env = dict(env, COLUMNS="80")
    else:
        reader, writer = os.pipe()
    try:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, pass_fds=tuple(keep_open)
        )
    finally:
        os.close(writer)
    try:
        while True:
            try:
                data = os.read(reader, 65536)
            except OSError as error:
                if error.errno == errno.EIO:  # how a pseudo-terminal says that the other side is gone
                    break
                raise
            if not data:
                break
            listener.feed(data)
        return child.wait(), listener.text()
    except BaseException:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    finally:
        os.close(reader)


def diagnose(output, code, settings, python):
    """One paragraph: why pip failed and what to do. The order matters: a full disk also breaks connections."""

    def has(pattern):
        return re.search(pattern, output, re.IGNORECASE)

    if code in (-9, 137):
        return (
            "pip was killed, most likely because memory ran out. Close other programs (2 GB of free memory are plenty) "
            "and run the same command again."
        )
    if has(r"no space left on device|errno 28|disk quota exceeded"):
        return (
            "the disk is full. pip writes to three places: this folder, its cache and the folder for temporary files.\n"
            "  `df -h . /tmp ~/.cache` shows which one; TMPDIR and PIP_CACHE_DIR move the last two. Then run the same command again."
        )
    if has(r"(?m)^(?!.*connection).*(read-only file system|permission denied|errno 13\b|errno 30\b)"):
        return (
            "pip may not write where it has to. If an earlier run was started with sudo, give the folder back to yourself "
            '(`sudo chown -R "$USER" .`), then run the same command again.'
        )
    if has(r"do not match the hashes|incorrect header check|BadZipFile|file is not a zip file|IncompleteRead.*hash"):
        return (
            "a download arrived damaged. `%s -m pip cache purge` throws away what was kept of it; then run the same command again." % python
        )
    if has(r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError"):
        return (
            "the package index's certificate was not accepted. Behind a company's proxy, name its certificate file: "
            "`export PIP_CERT=/path/to/ca.pem`. Also check this machine's clock."
        )
    if has(r"40[13] Client Error|401 Unauthorized|403 Forbidden|407 Proxy Authentication"):
        return (
            "the package index or a proxy refused access (401, 403 or 407). Check the name and password in PIP_INDEX_URL and HTTPS_PROXY."
        )
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return (
            "pip is told to use no package index (PIP_NO_INDEX or no-index in its settings), "
            "and the packages are not in the folders it may use (%s). "
            "Unset it, or name a folder with the wheels in PIP_FIND_LINKS." % (settings.get("find-links") or "none named")
        )
    if has(
        r"NewConnectionError|Failed to establish a new connection|Name or service not known|Temporary failure in name resolution|"
        r"Network is unreachable|Connection refused|ConnectTimeoutError|ReadTimeoutError|Connection reset by peer|ProxyError|"
        r"Connection broken|ProtocolError|Remote end closed connection|Max retries exceeded|No route to host"
    ):
        through = [
            "%s: %s" % (key, without_password(settings[key])) for key in ("index-url", "extra-index-url", "proxy") if settings.get(key)
        ]
        through += [name + ": " + without_password(os.environ[name]) for name in ("HTTPS_PROXY", "https_proxy") if os.environ.get(name)]
        return (
            "pip could not reach the package index: the network is away, or a proxy or mirror is set wrongly.\n"
            "  Set here: %s.\n"
            "  Behind a proxy: `export HTTPS_PROXY=...`; with a mirror: `export PIP_INDEX_URL=...`. Then run the same command again: "
            "what was fetched is kept." % (", ".join(through) or "neither a proxy nor a mirror")
        )
    missing = has(r"No matching distribution found for ([^\s;]+)")
    if missing:
        return (
            "pip finds no %s for Python %d.%d on %s. If this Python is newer than 3.12, name an older one: `make lab PYTHON=python3.12`.\n"
            "  If pip uses a mirror (PIP_INDEX_URL), it may lack this version; set PyTorch's CPU index as PIP_EXTRA_INDEX_URL, "
            "beside the usual index." % (missing.group(1), sys.version_info[0], sys.version_info[1], platform.machine())
        )
    if has(r"ResolutionImpossible|conflicting dependencies"):
        return (
            "pip found the pinned versions to contradict each other. On an untouched copy of the course this should not happen: "
            "undo changes to constraints.txt and pyproject.toml, or take a fresh copy."
        )
    if has(r"Failed building wheel|subprocess-exited-with-error|Failed to build|metadata-generation-failed"):
        return (
            "a package has no ready-made build for this Python and could not be built here. "
            "Name a tested Python: `make lab PYTHON=python3.12`."
        )
    return "pip failed (exit code %d) for a reason that is not among the known ones; its own words are above." % code


def without_password(url):
    return re.sub(r"//[^/@]*@", "//***@", url)


# ---------------------------------------------------------------------------------------------------------------------
# The build


def locked(root):
    """Open and lock ``.venv.lock``, waiting for another run if there is one. The lock goes with the last process that
    holds the file open. Returns the open file."""
    import fcntl

    path = os.path.join(root, LOCK)
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
    except OSError as error:
        raise Stop(
            "this folder cannot be written (%s: %s). Copy the course to a folder of your own, "
            "for instance `cp -r . ~/norm-kernels-course`, "
            "and run the same command there." % (path, error.strerror)
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            say("this file system has no locks (%s): do not start a second set-up at the same time." % error.strerror)
            return file
        file.seek(0)
        say(
            "another set-up is at work in this folder (process %s). Waiting for it; Ctrl-C stops waiting."
            % (file.read().strip() or "unknown")
        )
        fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def write_whole(path, text):
    """Write beside, sync, rename: the file is there in full or not at all."""
    temporary = path + ".part"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def clear(venv):
    """Empty the folder, the marker excepted. The folder itself stays: it may be a link to a larger disk."""
    for name in os.listdir(venv):
        if name == MARKER:
            continue
        path = os.path.join(venv, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def create_venv(venv):
    """A new environment in ``venv``, made by this Python, or by the one beneath it if this one is itself an environment's."""
    python = getattr(sys, "_base_executable", None) or sys.executable
    done = subprocess.run(
        [python, "-m", "venv", "--prompt", "norm-kernels", venv],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=clean_environment(), check=False,
    )  # fmt: skip
    if done.returncode != 0:
        output = done.stdout.decode("utf-8", "replace").strip()
        if "ensurepip" in output and "No space left" not in output:
            raise Stop(
                "Python could not put pip into the new environment. On Debian and Ubuntu: `sudo apt install python%d.%d-venv`, "
                "then run the same command again. Its words:\n%s" % (sys.version_info[0], sys.version_info[1], indent(output))
            )
        why = (
            diagnose(output, done.returncode, {}, python)
            if "No space left" in output
            else "Its words are above; a fresh copy of the course may help."
        )
        raise Stop("Python could not make the environment:\n%s\n  %s" % (indent(output), why))


def indent(text, lines=12):
    return "\n".join("    " + line for line in text.splitlines()[-lines:])


def pinned(root, package):
    """The version that constraints.txt names for ``package``."""
    with open(os.path.join(root, "constraints.txt"), encoding="utf-8") as file:
        match = re.search(r"(?m)^%s==(\S+)" % re.escape(package), file.read())
    if not match:
        raise Stop("constraints.txt names no version of %s. Take a fresh copy of the course." % package)
    return match.group(1)


def check_imports(root):
    """Import torch and triton in the new environment. Returns their versions in words; raises Stop unless they are the pinned ones."""
    code = "import json, torch, triton; print(json.dumps([torch.__version__, triton.__version__]))"
    done = subprocess.run(
        [venv_python(root), "-c", code],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean_environment(), check=False,
    )  # fmt: skip
    errors = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        why = ""
        if "failed to map segment" in errors:
            why = "\n  This disk is mounted with `noexec`. Move the folder to another one."
        raise Stop(
            "PyTorch and Triton are installed, but do not import (exit code %d):\n%s%s\n"
            "  `make clean` and the same command again make the environment afresh." % (done.returncode, indent(errors), why)
        )
    torch, triton = json.loads(done.stdout.decode("utf-8").strip().splitlines()[-1])
    for name, version in (("torch", torch), ("triton", triton)):
        if version.split("+")[0] != pinned(root, name):
            raise Stop(
                "%s %s was installed, but %s is pinned in constraints.txt. Something outside this folder decides: "
                "look at `env | grep PIP_` "
                "and `pip config list`, then `make clean` and the same command again." % (name, version, pinned(root, name))
            )
    return "torch %s, triton %s" % (torch, triton)


REASONS = {
    "half-made": "the last set-up did not finish; starting afresh",
    "moved": "the environment was made in another folder; making a new one",
    "broken": "the environment's Python no longer runs; making a new one",
    "other-python": "the environment has another Python than the one you name; making a new one",
}


def build(root, asked, lock):
    """Bring ``.venv`` up to date; the caller holds the lock. Raises Stop."""
    started = time.time()
    venv = os.path.join(root, ".venv")
    python = venv_python(root)
    have = "%d.%d" % sys.version_info[:2]
    state, _ = standing(root, have if asked else None)
    if state == "ready":
        return
    fresh = state not in ("outdated", "foreign")
    if state in REASONS:
        say(REASONS[state] + ".")
    if state == "foreign" and (python_version(python) is None or not runs_pip(python)):
        raise Stop(
            "there is a folder .venv here that the course did not make, and no Python with pip runs in it. "
            "Move it away (`mv .venv .venv-other`) and run the same command again."
        )
    if state == "foreign" and tuple(int(part) for part in python_version(python).split(".")) < OLDEST:
        raise Stop(
            "the folder .venv here holds Python %s; the course needs 3.11 or newer. Move it away (`mv .venv .venv-other`) "
            "and run the same command again." % python_version(python)
        )
    try:
        os.makedirs(venv, exist_ok=True)
        write_whole(os.path.join(venv, MARKER), "unfinished set-up; the next `make lab` starts afresh\n")
        if os.path.lexists(os.path.join(venv, STAMP)):
            os.unlink(os.path.join(venv, STAMP))
        if fresh:
            clear(venv)
    except OSError as error:
        raise Stop(
            "%s cannot be written (%s). If an earlier run was started with sudo: `sudo rm -rf .venv`, then run the same command again."
            % (error.filename or venv, error.strerror)
        ) from error
    if fresh:
        check_disk(root, "least")
        say("making an environment in .venv with Python %s. Nothing outside this folder changes." % platform.python_version())
        create_venv(os.path.realpath(venv))  # the module venv refuses a link
    else:
        say("bringing the packages in .venv to the versions in constraints.txt.")
    version = python_version(python)
    settings = pip_settings(python)
    if fresh:
        build_of_torch = expected_build(settings, pinned(root, "torch"), "cp" + version.replace(".", ""))
        announce(build_of_torch)
        check_disk(root, build_of_torch)
    install(root, python, settings, lock)
    say("checking that PyTorch and Triton import.")
    versions = check_imports(root)
    stamp = {"files": wanted(root), "python": version, "place": os.path.realpath(venv), "versions": versions}
    write_whole(os.path.join(venv, STAMP), json.dumps(stamp) + "\n")
    os.unlink(os.path.join(venv, MARKER))
    say("done in %.0f s." % (time.time() - started))


def runs_pip(python):
    done = subprocess.run([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def install(root, python, settings, lock):
    """Two steps: first the pinned setuptools, then the course with it, so that the build step is pinned as well."""
    pip = [python, "-m", "pip", "--no-input", "--disable-pip-version-check", "install", "-c", "constraints.txt"]
    for arguments in (["setuptools"], ["--no-build-isolation", "-e", ".[dev]"]):
        code, output = stream(pip + arguments, root, clean_environment(), keep_open=(lock.fileno(),))
        if code != 0:
            raise Stop(diagnose(output, code, settings, python))


def main(argv):
    parser = argparse.ArgumentParser(description="Make the course's environment in .venv, or find that it is ready.")
    parser.add_argument("--asked", action="store_true", help="the person named this Python: take no other in its place")
    asked = parser.parse_args(argv).asked
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        state, stamp = standing(root, "%d.%d" % sys.version_info[:2] if asked else None)
        if state != "ready":
            check_platform()
            check_python(asked, argv)
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
            with locked(root) as lock:
                build(root, asked, lock)
            stamp = read_stamp(os.path.join(root, ".venv"))
        say("environment is ready (Python %s, %s)." % (stamp["python"], stamp["versions"]))
    except Stop as stop:
        sys.stdout.flush()
        print("\ncourse: " + str(stop), file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("\ncourse: stopped. Nothing is broken; the same command starts again.", file=sys.stderr, flush=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
