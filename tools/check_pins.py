"""Proves, without installing, that constraints.txt fits every Python and processor that the course
admits: `make pins`.

uv resolves the course with its authors' tools for each of them from ready-made wheels alone
(``--only-binary``). A pin that asks for a newer Python, a package without a wheel, a conflict or a
package that is not pinned ends it with exit code 1.

PyTorch's CUDA build is what the package index has. Its CPU build is tried where pip's settings name
a place with its wheel.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from installer import read_pip_settings, uv_environment

ROOT = Path(__file__).resolve().parent.parent
# the first of each: a pin that asks for 3.11.5 is refused by 3.11.0
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
# NVIDIA's libraries come with the CUDA build, which names their exact versions itself
UNPINNED = re.compile(r"(nvidia|cuda)-")


def resolve(python: str, platform: str, settings: dict[str, str]) -> tuple[set[str], str]:
    """The packages of one environment as 'name==version', and uv's words if there is no such
    environment."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "pyproject.toml",
        "--extra",
        "dev",
        "--constraints",
        "constraints.txt",
        "--quiet",
    ]
    command += [
        "--no-header",
        "--no-annotate",
        "--only-binary",
        ":all:",
        "--python-version",
        python,
        "--python-platform",
        platform,
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=uv_environment(settings), capture_output=True, text=True, check=False
    )
    return set(done.stdout.split()), done.stderr.strip() if done.returncode else ""


def list_settings() -> list[dict[str, str]]:
    """pip's settings; and, where they name a folder with wheels, which may have the CPU build, the
    same without it."""
    here = read_pip_settings(sys.executable)
    elsewhere = {name: value for name, value in here.items() if name != "find-links"}
    return [here] if here == elsewhere else [here, elsewhere]


def describe_fault(found: set[str], refusal: str, pinned: set[str]) -> str:
    """Why an environment cannot be made as pinned; "" if it can."""
    loose = sorted(
        line for line in found if _normal(line) not in pinned and not UNPINNED.match(line)
    )
    return refusal or (f"not pinned: {', '.join(loose)}" if loose else "")


def main() -> int:
    minimum = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ]
    if minimum != f">={PYTHONS[0].rpartition('.')[0]}":
        print(
            f"pins: requires-python is {minimum}, and {PYTHONS[0]} is the first Python tried here."
            " Change one of them."
        )
        return 1
    pinned = {
        _normal(line)
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
        if "==" in line
    }
    tried, wrong = set(), 0  # the builds of PyTorch that were resolved
    for python, platform, settings in itertools.product(PYTHONS, PLATFORMS, list_settings()):
        found, refusal = resolve(python, platform, settings)
        fault = describe_fault(found, refusal, pinned)
        wrong += bool(fault)
        build = (
            "CPU"
            if any(line.startswith("torch==") and line.endswith("+cpu") for line in found)
            else "CUDA"
        )
        tried.add((python, platform, build))
        summary = f"{len(found)} packages, with PyTorch's {build} build"
        print(f"pins: Python {python}, {platform}: {fault or summary}", flush=True)
    untried = [
        f"Python {python}, {platform}"
        for python, platform in itertools.product(PYTHONS, PLATFORMS)
        if (python, platform, "CPU") not in tried
    ]
    if untried:
        print(
            "pins: not tried with PyTorch's CPU build, whose wheel is not at hand:"
            f" {'; '.join(untried)}"
        )
    print(
        f"pins: {wrong} of the environments above cannot be made as pinned"
        if wrong
        else "pins: every environment above can be made as pinned"
    )
    return 1 if wrong else 0


def _normal(line: str) -> str:
    """The name in front of '==', as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower()


if __name__ == "__main__":
    sys.exit(main())
