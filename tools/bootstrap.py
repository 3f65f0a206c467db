"""Makes the course's environment in ``.venv``: `make lab`, `make test` and the rest run this first.

``course lab`` of an installed package runs it too, with two environment variables: COURSE_FOLDER,
the course folder that gets the ``.venv``, and COURSE_PACKAGE, what an installer must be told to
install the course; in a checkout it is the checkout itself.

It checks the machine, makes the environment and leaves the installing to uv (``installer.py``),
which pip puts into the environment. Standard library only, and written so that Python 3.6 can read
it: an old Python has to get as far as the sentence that says it is too old. A second run finds the
stamp and is done in a fraction of a second.

What may happen half-way, and what is done about it:
    killed, power cut       the stamp is written last, a marker first: the next run sees the marker and starts afresh
    two runs at once        a lock that pip and uv hold too, so that even an orphaned one is waited for
    pip or uv fails         its output is shown as it comes and read at the same time; the cause is named at the end
"""  # noqa: E501

import argparse
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from installer import (
    clean_environment,
    find_cause,
    is_on,
    read_pip_settings,
    run_shown,
    uv_environment,
)
from machine import GPU_FILES, OLDEST, Stop, ask, check_disk, check_platform, check_python, say
from translation import gettext as _
from translation import mark as N_

# JupyterLab begins with the lesson, not with a question about news
LAB_CONFIG = os.path.join("etc", "jupyter", "labconfig", "page_config.json")
QUIET_LAB = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
STAMP, MARKER, LOCK = ".course-stamp", ".course-building", ".venv.lock"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.environ.get("COURSE_FOLDER") or ROOT
PACKAGE = os.environ.get("COURSE_PACKAGE")
VENV = os.path.join(FOLDER, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")


def hash_of_pins():
    """The hash over the files that decide what is installed."""
    digest = hashlib.sha256()
    for name in ("constraints.txt",) if PACKAGE else ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read() + b"\0")
    digest.update((PACKAGE or "").encode())
    return digest.hexdigest()


def read_stamp():
    """What was installed and for which place, or None where no complete environment stands."""
    try:
        with open(os.path.join(VENV, STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def find_state(asked, extras, torch_build):
    """How ``.venv`` stands: absent, foreign (nobody stamped it), half-made, moved, broken,
    other-python, other-torch, outdated or ready.

    ``asked`` is the Python version that the person named, '3.12', and ``torch_build`` the build of
    PyTorch; None takes what there is.
    """
    stamp = read_stamp()
    if stamp is None:
        if os.path.lexists(os.path.join(VENV, MARKER)):
            return "half-made"
        return "foreign" if os.path.isdir(VENV) and os.listdir(VENV) else "absent"
    if stamp.get("place") != os.path.realpath(VENV):
        return "moved"  # its scripts name the old folder: they would run the other checkout's code
    has = ask(VENV_PYTHON, "import sys; print('%d.%d' % sys.version_info[:2])")
    if has is None or has != stamp.get("python"):
        return "broken"
    if asked not in (None, has):
        return "other-python"
    if torch_build is not None and ("+cpu" in stamp.get("versions", "")) != (torch_build == "cpu"):
        return "other-torch"
    complete = stamp.get("pins") == hash_of_pins() and set(extras) <= set(stamp.get("extras", []))
    return "ready" if complete else "outdated"


def pinned(package):
    """The version that constraints.txt names for ``package``."""
    with open(os.path.join(ROOT, "constraints.txt"), encoding="utf-8") as file:
        match = re.search(r"(?m)^%s==(\S+)" % re.escape(package), file.read())
    if not match:
        raise Stop(
            _(
                "constraints.txt names no version of {package}. Take a fresh copy of the course."
            ).format(package=package)
        )
    return match.group(1)


def choose_torch(asked, settings):
    """Which build of PyTorch comes, and from where: ('cpu' or 'cuda', True if PyTorch's own index
    of CPU builds must be asked).

    An index whose address ends in /cpu, or a folder with the wheel, has the CPU build already.
    """
    places = " ".join(
        settings.get(key, "") for key in ("index-url", "extra-index-url", "find-links")
    ).split()
    wheel = "torch-%s+cpu-cp%d%d-*" % ((pinned("torch"), *sys.version_info[:2]))
    folders = [
        place[len("file://") :] if place.startswith("file://") else place for place in places
    ]
    if any(place.rstrip("/").endswith("/cpu") for place in places) or any(
        glob.glob(os.path.join(glob.escape(f), wheel)) for f in folders
    ):
        if asked == "cuda":
            raise Stop(
                _(
                    "TORCH=cuda is asked for, and pip's settings name a place with the CPU build."
                    " Take it out, or leave TORCH=cuda out."
                )
            )
        return "cpu", False
    if (
        asked is None
        and not is_on(settings, "no-index")
        and not any(os.path.exists(file) for file in GPU_FILES)
    ):
        return "cpu", True
    return ("cpu", not is_on(settings, "no-index")) if asked == "cpu" else ("cuda", False)


def lock_folder():
    """Open and lock ``.venv.lock``, waiting for another run if there is one. The lock goes with the
    last process that holds it open."""
    import fcntl

    path = os.path.join(FOLDER, LOCK)
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
    except OSError as error:
        raise Stop(
            _(
                "this folder cannot be written ({path}: {error}). Copy the course to a folder of"
                " your own, for instance `cp -r . ~/norm-kernels-course`, and run the same command"
                " there."
            ).format(path=path, error=error.strerror)
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            say(
                _(
                    "this file system has no locks ({error}): do not start a second set-up at the"
                    " same time."
                ).format(error=error.strerror)
            )
            return file
        owner = file.read().strip() or _("unknown")
        say(
            _(
                "another set-up is at work in this folder (process {process}). Waiting for it;"
                " Ctrl-C stops waiting."
            ).format(process=owner)
        )
        fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def write_whole(path, text):
    """Write beside, sync, rename: the file is there in full or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def create_venv():
    """A new environment, made by this Python, or by the one beneath it if this one is itself an
    environment's."""
    for name in os.listdir(VENV):  # the folder itself stays: it may be a link to a larger disk
        path = os.path.join(VENV, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name != MARKER:
            os.unlink(path)
    python = getattr(sys, "_base_executable", None) or sys.executable
    # the module venv refuses a link
    command = [python, "-m", "venv", "--prompt", "norm-kernels", os.path.realpath(VENV)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        check=False,
    )
    if done.returncode != 0:
        output = done.stdout.decode("utf-8", "replace").strip()
        missing = "ensurepip" in output and "no space" not in output.lower()
        why = (
            _("`sudo apt install python{version}-venv` (Debian, Ubuntu)").format(
                version="%d.%d" % sys.version_info[:2]
            )
            if missing
            else find_cause(output, 1, {})
        )
        raise Stop(
            _("Python could not make the environment:\n{output}\n  {why}").format(
                output=output[-2000:], why=why
            )
        )


def check_imports():
    """Import torch and triton in the new environment. Returns their versions in words; raises Stop
    unless they are the pinned ones."""
    code = "import json, torch, triton; print(json.dumps([torch.__version__, triton.__version__]))"
    done = subprocess.run(
        [VENV_PYTHON, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=clean_environment(), check=False
    )  # fmt: skip
    if done.returncode != 0:
        errors = done.stderr.decode("utf-8", "replace").strip()
        why = (
            _("This disk is mounted with `noexec`: move the folder to another one.")
            if "failed to map segment" in errors
            else _("`make clean`, then the same command again, makes the environment afresh.")
        )
        raise Stop(
            _(
                "PyTorch and Triton are installed, but do not import (exit {code}):\n{errors}\n"
                "  {why}"
            ).format(code=done.returncode, errors=errors[-2000:], why=why)
        )
    torch, triton = json.loads(done.stdout.decode("utf-8").strip().splitlines()[-1])
    for name, version in (("torch", torch), ("triton", triton)):
        if version.split("+")[0] != pinned(name):
            raise Stop(
                _(
                    "{package} {installed} was installed, but {pinned} is pinned in"
                    " constraints.txt. Something outside this folder decides: look at `env | grep"
                    " -E 'PIP_|UV_'` and `pip config list`, then `make clean` and the same command"
                    " again."
                ).format(package=name, installed=version, pinned=pinned(name))
            )
    return "torch %s, triton %s" % (torch, triton)


SIZES = {
    "cpu": N_("about 0.5 GB with PyTorch's CPU build, 2 GB on disk"),
    "cuda": N_("several GB with PyTorch's CUDA build, 5 GB on disk"),
}
NEWS = {
    "half-made": N_("the last set-up did not finish; starting afresh."),
    "moved": N_("the environment was made in another folder; making a new one."),
    "broken": N_("the environment's Python no longer runs; making a new one."),
    "other-python": N_(
        "the environment has another Python than the one you name; making a new one."
    ),
    "other-torch": N_(
        "the environment has another build of PyTorch than the one you name; making a new one."
    ),
    "outdated": N_("bringing the packages in .venv up to date."),
    "foreign": N_("installing into the environment that is in .venv already."),
}


def run_uv(arguments, settings, lock):
    """`uv pip install` into the environment; returns (exit code, output)."""
    command = [
        VENV_PYTHON,
        "-m",
        "uv",
        "pip",
        "install",
        "--python",
        VENV_PYTHON,
        "--constraints",
        "constraints.txt",
        "--compile-bytecode",
    ]
    command += ["--no-index"] if is_on(settings, "no-index") else []
    return run_shown(command + arguments, ROOT, uv_environment(settings), lock)


def confirm_cuda_build():
    """Ask whether the package index's build, which is ten times as large, may take the place of the
    CPU build. Raises Stop if not."""
    answer = _(
        "PyTorch's index of CPU builds did not answer, see above. The package index has another"
        " build: {size}."
    ).format(size=_(SIZES["cuda"]))
    if sys.stdin.isatty() and sys.stdout.isatty():
        say(answer)
        question = "course: %s [y/N] " % _("take that one?")
        if input(question).strip().lower() in ("y", "yes"):
            return
    ways_on = _(
        "Two ways on: run the same command again once that index can be reached, or write"
        " TORCH=cuda beside it (`make lab TORCH=cuda`), which takes the large build."
    )
    raise Stop(answer + "\n  " + ways_on)


def install(extras, asked_torch, lock):
    """uv, PyTorch's CPU build where it comes from PyTorch's own index, then the course with
    everything it needs. Raises Stop."""
    settings = read_pip_settings(VENV_PYTHON)
    has = ask(VENV_PYTHON, "import importlib.metadata as m; print(m.version('torch'))")
    has_torch = has is not None and has.split("+")[0] == pinned("torch")
    build, own_index = ("cpu", False) if has_torch else choose_torch(asked_torch, settings)
    if not has_torch:
        check_disk(VENV, build)
        say(
            _("fetching PyTorch, Triton, JupyterLab and what they need: {size}.").format(
                size=_(SIZES[build])
            )
        )
        if build == "cpu" and own_index and asked_torch is None:
            say(
                _(
                    "this machine shows no GPU, so the CPU build is taken. `TORCH=cuda` beside the"
                    " command takes the other one."
                )
            )
    pip = [
        VENV_PYTHON,
        "-m",
        "pip",
        "--no-input",
        "--disable-pip-version-check",
        "install",
        "-q",
        "uv==" + pinned("uv"),
    ]
    steps = [lambda: run_shown(pip, ROOT, clean_environment(), lock)]
    if own_index:  # that index alone, and for this package alone; what it needs comes with the rest
        steps.append(
            lambda: run_uv(
                ["--torch-backend", "cpu", "--no-deps", "torch==" + pinned("torch")], settings, lock
            )
        )
    course = [PACKAGE] if PACKAGE else ["--editable", ".[%s]" % ",".join(extras)]
    steps.append(
        lambda: run_uv(["--build-constraints", "constraints.txt", *course], settings, lock)
    )
    for number, step in enumerate(steps):
        code, output = step()
        if code != 0 and own_index and number == 1 and asked_torch is None:
            confirm_cuda_build()
            check_disk(VENV, "cuda")
        elif code != 0:
            raise Stop(find_cause(output, code, settings))


def build(asked, extras, torch, lock):
    """Bring ``.venv`` up to date; the caller holds the lock. Raises Stop."""
    started = time.time()
    state = find_state(asked, extras, torch)  # again: another run may have finished meanwhile
    if state == "ready":
        return
    if state in NEWS:
        say(_(NEWS[state]))
    if (
        state == "foreign"
        and ask(VENV_PYTHON, "import sys, pip; sys.exit(sys.version_info < %r)" % (OLDEST,)) is None
    ):
        raise Stop(
            _(
                "there is a folder .venv here that the course did not make, and no Python 3.11 or"
                " newer with pip runs in it.\n  Move it away (`mv .venv .venv-other`), then run the"
                " same command again."
            )
        )
    extras = sorted(set(extras) | set((read_stamp() or {}).get("extras", [])))
    try:
        write_whole(os.path.join(VENV, MARKER), "unfinished set-up; the next one starts afresh\n")
        if os.path.lexists(os.path.join(VENV, STAMP)):
            os.unlink(os.path.join(VENV, STAMP))
        if state not in ("outdated", "foreign"):
            say(
                _(
                    "making an environment in .venv with Python {version}. Your exercises,"
                    " notebooks and progress stay."
                ).format(version="%d.%d.%d" % sys.version_info[:3])
            )
            create_venv()
    except OSError as error:
        raise Stop(
            _(
                "{path} cannot be written ({error}). If an earlier run was started with sudo: `sudo"
                " rm -rf .venv`, then run the same command again."
            ).format(path=error.filename or VENV, error=error.strerror)
        ) from error
    install(extras, torch, lock)
    write_whole(os.path.join(VENV, LAB_CONFIG), json.dumps(QUIET_LAB) + "\n")
    versions = check_imports()
    python = ask(VENV_PYTHON, "import sys; print('%d.%d' % sys.version_info[:2])")
    stamp = {
        "pins": hash_of_pins(),
        "python": python,
        "place": os.path.realpath(VENV),
        "versions": versions,
        "extras": extras,
    }
    write_whole(os.path.join(VENV, STAMP), json.dumps(stamp) + "\n")
    os.unlink(os.path.join(VENV, MARKER))
    say(_("done in {seconds} s.").format(seconds="%.0f" % (time.time() - started)))


def main(argv):
    parser = argparse.ArgumentParser(
        description=_("Make the course's environment in .venv, or find that it is ready.")
    )
    parser.add_argument(
        "--asked",
        action="store_true",
        help=_("the person named this Python: take no other in its place"),
    )
    parser.add_argument("--dev", action="store_true", help=_("with the tools of authors and tests"))
    arguments = parser.parse_args(argv)
    asked = "%d.%d" % sys.version_info[:2] if arguments.asked else None
    extras = ["lab", *(["dev"] if arguments.dev else [])]
    torch = os.environ.get("TORCH", "").lower() or None
    try:
        if torch not in (None, "cpu", "cuda"):
            raise Stop(
                _(
                    "TORCH is {value}; it can be cpu or cuda, for the build of PyTorch, or be left"
                    " out."
                ).format(value=repr(torch))
            )
        if find_state(asked, extras, torch) != "ready":
            check_platform()
            check_python(arguments.asked, [os.path.abspath(__file__), *argv])
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
            with lock_folder() as lock:
                build(asked, extras, torch, lock)
        stamp = read_stamp()
        say(
            _("environment is ready (Python {python}, {versions}).").format(
                python=stamp["python"], versions=stamp["versions"]
            )
        )
    except Stop as stop:
        say(str(stop), sys.stderr)
        return 1
    except KeyboardInterrupt:
        say(_("stopped. Nothing is broken; the same command starts again."), sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
