"""Keep which stages of ``.ci/run`` are proven, and for which inputs: ``python tools/proven.py need
STAGE``, ``... record STAGE``.

Three stages depend on few files: the pins, the commands that a newcomer types, and the package.
``.ci/proven.json`` has for each the hash of these files when it last passed, and the date. ``need``
ends with exit code 0 if the stage has to run: its files are others, the proof is a week old, or
``CI_ALL`` is set, as for a release. ``record`` writes the proof after a pass; the author who
changes the files commits it. A record that is missing or out of date costs CI time and hides
nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / ".ci" / "proven.json"
DAYS = 7
_BUILD = ("pyproject.toml", "constraints.txt", "tools/installer.py", "tools/proven.py")
_BOOTSTRAP = (
    "Makefile",
    "setup.py",
    "tools/bootstrap.py",
    "tools/machine.py",
    "tools/translation.py",
)
# by stage: paths whose contents count, and folders of which only the names of the files count,
# since the tests prove the contents
_INPUTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "pins": ((*_BUILD, "tools/check_pins.py"), ()),
    "commands": (
        (
            *_BUILD,
            *_BOOTSTRAP,
            "course_command.py",
            "course_lib/authoring/hosted.py",
            "tools/try_commands.py",
            "tools/try_package.py",
        ),
        (),
    ),
    "package": (
        (
            *_BUILD,
            *_BOOTSTRAP,
            "MANIFEST.in",
            "course_command.py",
            "course_lib/learner",
            "tools/try_package.py",
        ),
        ("course_lib", "exercises", "notebooks", "solutions", "docs"),
    ),
}


def hash_inputs(stage: str) -> str:
    """Return the hash of the files that a stage depends on, as they are in the folder. Files that
    git does not track do not count."""
    contents, names = _INPUTS[stage]
    digest = hashlib.sha256("\n".join(_list_tracked(names)).encode())
    for name in _list_tracked(contents):
        file = ROOT / name
        digest.update(
            f"\n{name}\n".encode() + (file.read_bytes() if file.is_file() else b"removed")
        )
    return digest.hexdigest()


def _list_tracked(paths: tuple[str, ...]) -> list[str]:
    if not paths:
        return []
    listing = subprocess.run(
        ("git", "ls-files", "--", *paths), cwd=ROOT, text=True, capture_output=True, check=True
    )
    return sorted(listing.stdout.splitlines())


def read_record() -> dict[str, dict[str, str]]:
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def describe_need(stage: str, today: datetime.date) -> str:
    """Return why a stage has to run, or an empty string if it is proven."""
    proof = read_record().get(stage)
    if os.environ.get("CI_ALL"):
        return "CI_ALL is set"
    if proof is None:
        return "it has no proof yet"
    if proof["inputs"] != hash_inputs(stage):
        return f"its files have changed since {proof['date']}"
    age = (today - datetime.date.fromisoformat(proof["date"])).days
    return f"its proof is {age} days old" if age >= DAYS else ""


def main(argv: list[str]) -> int:
    action, stage = argv if len(argv) == 2 else ("", "")
    if action not in ("need", "record") or stage not in _INPUTS:
        print(f"proven: give need or record, and one of {', '.join(_INPUTS)}", file=sys.stderr)
        return 2
    today = datetime.date.today()
    if action == "record":
        proofs = read_record() | {stage: {"date": today.isoformat(), "inputs": hash_inputs(stage)}}
        RECORD.write_text(json.dumps(proofs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    need = describe_need(stage, today)
    print(f"ci: {stage}: {need or 'proven for these files less than a week ago, left out'}")
    return 0 if need else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
