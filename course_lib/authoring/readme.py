"""``python -m course_lib.authoring.readme``: write the generated parts of README.md,
docs/evidence.md and docs/kernel-trials.md.

README gets the commands that start the course and the first exercise with a verdict on it; the
other two get a table of kernels from the stored measurements. In all pages that name the package,
its commands are spelled as they work today. A test compares the committed pages with those that are
generated here.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path, PurePosixPath

import polib

from course_lib import catalog
from course_lib.authoring import verdicts
from course_lib.authoring.repository import START, is_published, read_repository, write_badges
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.paths import DISTRIBUTION
from course_lib.base.translation import FOLDER as LOCALE
from course_lib.bench import measurement
from course_lib.bench.measurement import PART
from course_lib.bench.summary import PEER_MARGIN, compare_with_peers
from course_lib.catalog import mutants, texts
from course_lib.catalog.cut import CELL_WIDTH, cut
from course_lib.lessons.panel_page import find_first_line

PAGE = paths.ROOT / "README.md"
EVIDENCE_PAGE = paths.ROOT / "docs" / "evidence.md"
KERNELS_PAGE = paths.ROOT / "docs" / "kernel-trials.md"
_SPELLINGS = {
    f"uvx --from CLONE {DISTRIBUTION} ": f"uvx {DISTRIBUTION} ",
    f"uvx --refresh --from CLONE {DISTRIBUTION} update": f"uvx {DISTRIBUTION}@latest update",
    "pip install CLONE": f"pip install {DISTRIBUTION}",
    '"CLONE[lab]"': f'"{DISTRIBUTION}[lab]"',
}
SPELLED = [paths.ROOT / "docs" / f"{name}.md" for name in ("setup", "commands", "instructors")]
_KINDS = ("forward", "backward", "long_rows")
# for each page, the kinds of measurement in its table and the row lengths that are the table's
# columns
_TABLES = {
    EVIDENCE_PAGE: (_KINDS, (256, 1024, 4096, 4097, 8192, 32768, 65536, 262144)),
    KERNELS_PAGE: (
        tuple(f"{kind}{PART}" for kind in _KINDS),
        (256, 1024, 2048, 4096, 4097, 5120, 8192, 16384, 65536, 262144),
    ),
}
_OPERATIONS = {
    "layer_norm": "LayerNorm forward",
    "rms_norm": "RMSNorm forward",
    "add_layer_norm": "add + LayerNorm",
    "add_rms_norm": "add + RMSNorm",
    "layer_norm_backward": "LayerNorm backward",
    "rms_norm_backward": "RMSNorm backward",
}
# the cause, on docs/verdicts.md, of the verdict on the first exercise that README shows
_VERDICT = "load_outside"
_SHOWN_EXERCISE = "00a"


def make_page(text: str, page: Path = PAGE, repository: str | None = None) -> str:
    """Return the text of ``page`` with its generated blocks written anew.

    Args:
        repository: the address of the repository; None takes the one in pyproject.toml.

    Raises: CourseError if the marks of a block are missing in ``text``, or if the kinds of
        measurement were not all measured on the same device with the same versions.
    """
    if page != PAGE:
        return _replace_block(text, page, "kernels", write_kernels(*_TABLES[page]))
    text = _replace_block(
        text, page, "start", write_start(read_repository() if repository is None else repository)
    )
    return _replace_block(text, page, "exercise", write_exercise())


def spell_package(text: str, published: bool) -> str:
    """Return ``text`` with the package's commands as they work: from the index, or from the clone,
    whose folder stands as CLONE."""
    for from_clone, from_index in _SPELLINGS.items():
        text = text.replace(*((from_clone, from_index) if published else (from_index, from_clone)))
    return text


def _replace_block(text: str, page: Path, name: str, content: str) -> str:
    block = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not block.search(text):
        raise CourseError(
            f"{paths.shown(page)}: the marks '<!-- {name}: ... -->' and '<!-- end of {name} -->'"
            " are missing."
        )
    return block.sub(lambda marks: f"{marks[1]}{content}{marks[2]}", text)


def write_start(repository: str) -> str:
    """Return the commands with which a newcomer starts today: from a clone, and without one where
    the package is published."""
    clone = (
        [f"git clone {repository}", f"cd {PurePosixPath(repository).name.removesuffix('.git')}"]
        if repository
        else []
    )
    commands = [*clone, "make lab", "make test"]
    where = "" if repository else ", in this folder"
    lines = [
        f"On Linux or WSL, with Python 3.11 or newer{where}:", "", "```sh", *commands, "```", "",
        "To learn, you need only `make lab`: it opens lesson 00 in JupyterLab. The first time it\n"
        "takes a minute and fetches 0.5 GB. `make test` proves what this page promises, in about\n"
        "a quarter of an hour on two cores.",
    ]  # fmt: skip
    if is_published():
        lines += ["", f"Without a clone, with [uv](https://docs.astral.sh/uv/): `{START[0]}`."]
    if badges := write_badges(repository):
        lines += ["", f"**Without installing anything**, in a browser: {badges}"]
    return "\n" + "\n".join(lines) + "\n\n"


def write_exercise() -> str:
    """Return the code of the first exercise, and the verdict on a mistake in it as a terminal shows
    it."""
    exercise = catalog.get(_SHOWN_EXERCISE)
    text = cut(texts.read_solution(exercise), f"{exercise.file}.py", CELL_WIDTH)
    code = "\n".join(text.splitlines()[find_first_line(text) - 1 :]).strip()
    section = verdicts.read_sections(verdicts.PAGE.read_text(encoding="utf-8"))[_VERDICT]
    quoted = [
        line.removeprefix(">")
        .removeprefix(" ")
        .replace(verdicts.FILE, f"exercises/{exercise.file}.py")
        for line in section.splitlines()
        if line.startswith(">")
    ]
    plain = [
        line.replace("**", "").replace("`", "") if not line[:1].isdigit() else line
        for line in quoted
        if "```" not in line
    ]
    wrapped = [
        part
        for line in plain
        for part in (textwrap.wrap(line, 80) if "|" not in line else [line]) or [""]
    ]
    (mutant,) = (
        entry for entry in mutants.read_mutants(exercise) if f"mutant `{entry['id']}`" in section
    )
    ((right, wrong),) = mutant["edits"]
    return (
        f"```python\n{code}\n```\n\nSomebody writes `{wrong}` instead of `{right}`. Every element"
        " of `y` is still right. The check says:\n\n```text\n"
        + "\n".join(wrapped).strip()
        + "\n```\n"
    )


def write_kernels(kinds: tuple[str, ...], columns: tuple[int, ...]) -> str:
    """Return a table with one row per operation and one column per row length, and a sentence about
    the device and the versions.

    Raises: CourseError if the kinds were not all measured on the same device with the same versions
    of PyTorch and Triton.
    """
    results = [measurement.stored(kind) for kind in kinds]
    reference = results[0]
    for kind, result in zip(kinds, results, strict=True):
        if result.device != reference.device or any(
            result.versions[name] != reference.versions[name] for name in ("torch", "triton")
        ):
            raise CourseError(
                f"{kind} was measured on {result.device}, {kinds[0]} on {reference.device}: one"
                " table cannot show both."
            )
    entries = [
        entry for result in results for entry in compare_with_peers(result) if entry["M"] > 16
    ]
    cells = {(entry["op"].split(" ")[0], entry["N"]): entry for entry in entries}
    lines = [f"| N | {' | '.join(map(str, columns))} |", "|---" * (len(columns) + 1) + "|"]
    for op, name in _OPERATIONS.items():
        pairs = [_write_pair(cells.get((op, N))) for N in columns]
        lines.append(f"| {name} | {' | '.join(pairs)} |")
    compared = [entry for entry in entries if entry["to_peer"]]
    behind = sum(entry["to_peer"] > PEER_MARGIN for entry in compared)
    ahead = sum(entry["to_peer"] < 1 / PEER_MARGIN for entry in compared)
    torch, triton = reference.versions["torch"].split("+")[0], reference.versions["triton"]
    versions = f"PyTorch {torch}, Triton {triton}"
    return (
        "\n".join(lines)
        + f"\n\n{reference.label()}, {versions}, fp16. Of the {len(compared)} shapes with many rows"
        f" that were\ncompared the course's kernel is more than 2 % ahead at {ahead} and more"
        f" than 2 % behind at {behind}.\n"
    )


def _write_pair(entry: dict | None) -> str:
    if entry is None:
        return "-"
    return (
        f"**{entry['ours']:.2f}**"
        f" {'-' if entry['peer_over_floor'] is None else format(entry['peer_over_floor'], '.2f')}"
    )


def main() -> int:
    for page in SPELLED:
        write_atomic(page, spell_package(page.read_text(encoding="utf-8"), is_published()))
    for file in sorted(
        {path for name in ("setup", "commands") for path in LOCALE.glob(f"*/{name}.po")}
    ):
        catalog_file = polib.pofile(str(file), wrapwidth=100)
        for entry in catalog_file:
            entry.msgid, entry.msgstr = (
                spell_package(words, is_published()) for words in (entry.msgid, entry.msgstr)
            )
        catalog_file.save()
    for page in (PAGE, *_TABLES):
        before = page.read_text(encoding="utf-8")
        after = make_page(before, page)
        write_atomic(page, after)
        print(f"{page.name}: {'up to date' if after == before else 'written anew'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
