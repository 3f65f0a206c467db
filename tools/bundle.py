"""A bundle of wheels for a machine without network: `make bundle` collects it, `python3
tools/bundle.py install DIR` installs it there.

Such a machine has a GPU, and with it its own PyTorch and Triton as a rule: the bundle leaves these
out unless `--torch` is given. What comes is what the lessons and `make nbval-gpu` need, for the
Python and the processor that are named, at the versions of constraints.txt, from ready-made wheels
alone. `bundle.json` in the folder says what it is for; `install` refuses another Python or
processor before it changes anything.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import platform
import re
import site
import subprocess
import sys
import time

from bootstrap import LAB_CONFIG, QUIET_LAB, ROOT, STAMP, hash_of_pins, pinned, write_whole
from installer import clean_environment, find_cause, read_pip_settings, uv_environment
from machine import OLDEST, Stop, say

# what runs notebooks in CI; the other tools of authors need the whole environment
RUNNERS = ("jupytext", "nbclient", "nbformat", "nbval", "pytest", "pytest-timeout", "pytest-xdist")
BUILD = ("setuptools",)  # for the course itself, which is installed in place
OWN = ("torch", "triton")
WITH_TORCH = re.compile(r"(nvidia|cuda)-")  # libraries that the CUDA build brings
LESSONS_IMPORT = (
    "torch", "triton", "numpy", "ml_dtypes", "ipywidgets", "jupyterlab", "matplotlib", "polib",
    "psutil", "rich", "landlockpy", "sympy", "typer", "nbval",
)  # fmt: skip
FACTS = "bundle.json"


def list_requirements(torch: bool) -> list[str]:
    """The course's own dependencies and what runs notebooks, by name."""
    import tomllib

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["lab"]]
    return [name for name in (*names, *RUNNERS, *BUILD) if torch or name not in OWN]


def resolve(
    names: list[str], python: str, processor: str, settings: dict[str, str], torch: bool
) -> list[str]:
    """Every package that comes, as 'name==version'. Raises Stop if there is no such environment."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "-", "--constraints", "constraints.txt",
        "--quiet", "--no-header", "--no-annotate",
        "--only-binary", ":all:", "--python-version", python, "--python-platform",
        f"{processor}-manylinux_2_28",
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=ROOT,
        input="\n".join(names),
        env=uv_environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Stop(f"no set of wheels fits Python {python} on {processor}:\n{done.stderr.strip()}")
    versions = [line.partition(" ")[0] for line in done.stdout.split("\n") if "==" in line]
    return [
        line
        for line in versions
        if torch or not (line.partition("==")[0] in OWN or WITH_TORCH.match(line))
    ]


def name_platforms(processor: str) -> list[str]:
    """The platform tags that a machine with glibc 2.28 takes; pip, unlike uv, wants each of
    them."""
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    tags = []
    for minor in range(28, 4, -1):
        tags.append(f"manylinux_2_{minor}_{processor}")
        if minor in legacy:
            tags.append(f"{legacy[minor]}_{processor}")
    return [*tags, f"linux_{processor}"]


def collect(folder: str, python: str, processor: str, torch: bool) -> None:
    """Fetch the wheels into ``folder``, which is not there yet or empty. Raises Stop."""
    if os.path.exists(folder) and os.listdir(folder):
        raise Stop(
            f"{folder} is not empty, and nothing is overwritten. Name a folder that is not there"
            " yet."
        )
    started = time.time()
    settings = read_pip_settings(sys.executable)
    if torch:  # pip's settings may name a folder with the CPU build, which a GPU has no use for
        settings = {name: value for name, value in settings.items() if name != "find-links"}
    packages = resolve(list_requirements(torch), python, processor, settings, torch)
    os.makedirs(folder, exist_ok=True)
    listed = os.path.join(folder, "requirements.txt")
    write_whole(listed, "\n".join(packages) + "\n")
    say(f"fetching {len(packages)} packages for Python {python} on {processor} into {folder}.")
    command = [
        sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "download",
        "--quiet", "--no-deps", "--only-binary", ":all:",
        "--python-version", python, "--implementation", "cp", "--dest", folder, "--requirement",
        listed,
    ]  # fmt: skip
    for tag in name_platforms(processor):
        command += ["--platform", tag]
    environment = clean_environment() | ({"PIP_FIND_LINKS": ""} if torch else {})
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Stop(
            find_cause(done.stderr, done.returncode, settings) + f"\n{done.stderr.strip()[-2000:]}"
        )
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    size = sum(os.path.getsize(os.path.join(folder, name)) for name in wheels)
    facts = {
        "python": python,
        "processor": processor,
        "torch": torch,
        "wheels": sorted(wheels),
        "pins": hash_of_pins(),
    }
    write_whole(os.path.join(folder, FACTS), json.dumps(facts, indent=1) + "\n")
    say(f"{len(wheels)} wheels, {size / 1e6:.0f} MB, in {time.time() - started:.0f} s.")
    say(
        f"copy the course and {folder} to that machine, and in the course's folder there:"
        f" python{python} tools/bundle.py install {folder}"
    )


def read_facts(folder: str) -> dict:
    """What a bundle is for. Raises Stop if it is none, is not whole, or is not for this machine and
    this course."""
    try:
        with open(os.path.join(folder, FACTS), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError) as error:
        raise Stop(
            f"{folder} holds no whole bundle ({error}). `make bundle` makes one where there is a"
            " network."
        ) from error
    lacking = [name for name in facts["wheels"] if not os.path.exists(os.path.join(folder, name))]
    if lacking:
        raise Stop(
            f"{folder} lacks {len(lacking)} of its {len(facts['wheels'])} wheels, such as"
            f" {lacking[0]}. Copy it again."
        )
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if (facts["python"], facts["processor"]) != (here, platform.machine()):
        raise Stop(
            f"this bundle is for Python {facts['python']} on {facts['processor']}; this is Python"
            f" {here} on {platform.machine()}. Start it "
            f"with python{facts['python']}, or collect another one: make bundle"
            f' BUNDLE_ARGS="--python {here} --processor {platform.machine()}"'
        )
    if facts["pins"] != hash_of_pins():
        raise Stop(
            "this bundle was collected for another version of the course: constraints.txt or"
            " pyproject.toml differ. Collect it again."
        )
    return facts


def install(folder: str) -> None:
    """Make .venv from a bundle, with the PyTorch and Triton of this Python where the bundle has
    none. Raises Stop."""
    started = time.time()
    facts = read_facts(folder)
    venv = os.path.join(ROOT, ".venv")
    if os.path.exists(venv) and os.listdir(venv):
        raise Stop(
            "there is an environment in .venv already, and it is left alone. `make clean` removes"
            " it; then the same command again."
        )
    if not facts["torch"]:
        say(
            f"this Python has {import_versions(sys.executable, OWN)}; the environment takes them"
            " from here."
        )
    python = os.path.join(venv, "bin", "python")
    see = [] if facts["torch"] else ["--system-site-packages"]
    run([sys.executable, "-m", "venv", "--prompt", "norm-kernels", *see, venv])
    pip = [
        python,
        "-m",
        "pip",
        "--no-input",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
    ]
    # an environment itself: a new one sees only the Python beneath it
    if not facts["torch"] and sys.prefix != sys.base_prefix:
        (packages,) = glob.glob(
            os.path.join(glob.escape(venv), "lib", "python3.*", "site-packages")
        )
        write_whole(
            os.path.join(packages, "packages_of_this_python.pth"),
            "\n".join(site.getsitepackages()) + "\n",
        )
    run([*pip, "--find-links", folder, "--requirement", os.path.join(folder, "requirements.txt")])
    run([*pip, "--no-build-isolation", "--editable", ROOT])
    versions = import_versions(python, LESSONS_IMPORT)
    write_whole(os.path.join(venv, LAB_CONFIG), json.dumps(QUIET_LAB) + "\n")
    # as bootstrap.py leaves it, so that `make lab` and `make nbval-gpu` find the environment ready
    # and ask no network
    stamp = {
        "pins": hash_of_pins(), "python": facts["python"], "place": os.path.realpath(venv),
        "extras": ["dev", "lab"],
        "versions": ", ".join(versions.split(", ")[:2]),
    }  # fmt: skip
    write_whole(os.path.join(venv, STAMP), json.dumps(stamp) + "\n")
    say(
        f"the environment is in .venv, from {len(facts['wheels'])} wheels, in"
        f" {time.time() - started:.0f} s ({stamp['versions']})."
    )
    say(
        "next: .venv/bin/course doctor, make lab, make nbval-gpu. (make lint and make test need"
        " tools that no bundle has.)"
    )


def import_versions(python: str, names: tuple[str, ...]) -> str:
    """ "torch 2.13.0, triton 3.7.1". Raises Stop if one of them cannot be imported by ``python``."""  # noqa: E501
    code = (
        f"import importlib, importlib.metadata as m\nfor name in {names!r}:\n   "
        " importlib.import_module(name)\n    print(name, m.version(name))"
    )
    done = subprocess.run(
        [python, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        versions = done.stdout.split("\n")[:-1]
        failure = f"{python} cannot import {names[len(versions)]}: {why}."
        hint = (
            " Start this with the Python that has PyTorch, or collect a bundle that brings it:"
            f" make bundle BUNDLE_ARGS=--torch (torch {pinned('torch')})."
        )
        raise Stop(
            failure
            + (
                hint
                if names[len(versions)] in OWN
                else " The bundle may be damaged: copy it again."
            )
        )
    return ", ".join(done.stdout.strip().split("\n"))


def run(command: list[str]) -> None:
    """Raises Stop, with what the command said, if it fails."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Stop(
            f"this failed (exit code {done.returncode}):"
            f" {' '.join(command)}\n{done.stdout.strip()[-2000:]}"
        )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/bundle.py", description="Wheels for a machine without network."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="fetch the wheels, where there is a network")
    collecting.add_argument("folder", nargs="?", default="")
    collecting.add_argument("--python", default="3.11", help="of that machine (%(default)s)")
    collecting.add_argument(
        "--processor",
        default="x86_64",
        choices=("x86_64", "aarch64"),
        help="of that machine (%(default)s)",
    )
    collecting.add_argument(
        "--torch", action="store_true", help="PyTorch and Triton too; several GB"
    )
    installing = commands.add_parser("install", help="make .venv from them, on that machine")
    installing.add_argument("folder")
    arguments = parser.parse_args(argv)
    try:
        if sys.version_info < OLDEST:
            oldest = ".".join(map(str, OLDEST[:3]))
            raise Stop(
                f"the course needs Python {oldest} or newer, and this is"
                f" {platform.python_version()}."
            )
        if arguments.command == "collect":
            folder = arguments.folder or os.path.join(
                "build", f"bundle-{arguments.python}-{arguments.processor}"
            )
            collect(os.path.abspath(folder), arguments.python, arguments.processor, arguments.torch)
        else:
            install(os.path.abspath(arguments.folder))
    except Stop as stop:
        say(str(stop), sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("stopped. What was made so far can be removed; nothing else was changed.", sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
