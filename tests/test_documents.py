"""The guides keep what they say: links lead somewhere, commands run, and the term's plan has every
lesson with its minutes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml

import course_lib
from course_lib import catalog
from course_lib.authoring.lesson_size import measure
from course_lib.authoring.notebooks import list_sources
from course_lib.base import paths

PAGES = sorted([*paths.ROOT.glob("*.md"), *(paths.ROOT / "docs").glob("*.md")])
GUIDE = (paths.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((paths.ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    set((paths.ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    - set((paths.ROOT / ".github").rglob("config.yml"))
)
MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
# Commands of the guide that are not run here, and why. Those of make are looked up in the Makefile
# with what they set.
ELSEWHERE = {
    "course release ../course-for-the-class": "tests/authoring/test_release.py runs it",
    "course grade submissions -o results --week 3": "the tests of grading run it",
    "python3.11 tools/bundle.py install build/bundle": (
        "tests/tools/test_bundle.py runs it with small wheels: 127 take minutes"
    ),
}
MADE = re.compile(r"make (?P<target>[a-z-]+)(?P<settings>( [A-Z_]+=(\"[^\"]*\"|\S+))*)")


def find_links(text: str) -> list[str]:
    """Targets of links inside the repository, without what leads into a page; code is no link."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [
        target
        for target in re.findall(r"\]\(([^)\s#]+)", text)
        if "://" not in target and not target.startswith("mailto:")
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(paths.ROOT)))
def test_every_link_inside_the_repository_resolves(page):
    assert [
        target
        for target in find_links(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ] == []


def test_the_test_sees_links_and_leaves_code_alone():
    assert find_links("[a](b.md#c) `x[0](y)` [d](https://e) ![f](g.png)\n```\n[h](i)\n```") == [
        "b.md",
        "g.png",
    ]


def read_commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


COMMANDS = read_commands()


def test_the_link_for_a_hub_opens_a_lesson_of_the_copy_that_it_clones():
    (link,) = re.findall(r"^https://HUB/hub/user-redirect/git-pull\?(\S+)$", GUIDE, re.MULTILINE)
    asked = {name: value for name, (value,) in parse_qs(link, strict_parsing=True).items()}
    assert asked.keys() == {"repo", "branch", "urlpath"}
    *_, copy = asked["repo"].split("/")
    lesson = asked["urlpath"].removeprefix(f"lab/tree/{copy}/")
    assert (paths.ROOT / lesson).is_file() and f"ENV PYTHONPATH=/home/jovyan/{copy}\n" in GUIDE
    assert f"COPY --chown=jovyan {copy} " in GUIDE, "the guide's own name of the copy"


def test_the_guide_has_commands_and_nothing_is_excused_that_is_not_there():
    assert len(COMMANDS) >= 10 and ELSEWHERE.keys() <= set(COMMANDS)


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.startswith("make ")]
)
def test_a_make_command_of_the_guide_is_one_of_the_makefile(command):
    named = MADE.fullmatch(command)
    assert named, "make, a target and settings"
    assert re.search(rf"^{named['target']}:", MAKEFILE, re.MULTILINE)
    for setting in re.findall(r"([A-Z_]+)=", re.sub(r'"[^"]*"', "", named["settings"])):
        assert f"$({setting})" in MAKEFILE or setting in ("TORCH",), f"nothing reads {setting}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if not c.startswith("make ") and c not in ELSEWHERE]
)
def test_a_command_of_the_guide_runs(command, tmp_path):
    solution = paths.SOLUTIONS / f"{catalog.get('07a').file}.py"
    (tmp_path / "secret").write_text("ab" * 16)
    command = command.replace("PATH", str(solution))
    if "--require-tier" in command:  # not every machine has that tier, and then it says so
        command = command.partition(" --require-tier")[0]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def read_plan() -> list[tuple[list[str], int, str]]:
    """Lessons, minutes and exercises of each week."""
    rows = re.findall(r"^\| \d+ \| ([\d, ]+) \| (\d+) \| ([^|]+) \|", GUIDE, re.MULTILINE)
    return [(lessons.split(", "), int(minutes), exercises) for lessons, minutes, exercises in rows]


def test_readme_counts_the_lessons():
    page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    lessons = {
        *re.findall(r"\*\*How long:\*\* (\d+) lessons", page),
        *re.findall(r"of the (\d+) lessons", page),
    }
    assert lessons == {str(len(list_sources()))}, (
        f"README.md counts {', '.join(sorted(lessons))} lessons; there are {len(list_sources())}"
    )


def test_the_terms_plan_has_every_lesson_in_order_with_the_minutes_of_its_title():
    said = {
        source.name[:2]: sum(size.said for size in measure(source)) for source in list_sources()
    }
    planned = [lesson for lessons, _, _ in read_plan() for lesson in lessons]
    missing = sorted(set(said) - set(planned))
    assert not missing, (
        f"docs/instructors.md has no week in the plan of a term for lesson {', '.join(missing)}"
    )
    assert planned == sorted(planned)
    for lessons, minutes, exercises in read_plan():
        if all(lesson in said for lesson in lessons):
            assert minutes == sum(said[lesson] for lesson in lessons), (
                f"the titles of lessons {', '.join(lessons)} say otherwise"
            )
        if "those of" not in exercises:
            wanted = [
                exercise.id
                for exercise in catalog.required().values()
                if exercise.lesson in lessons
            ]
            assert exercises.split(", ") == wanted


def test_the_workshop_fits_its_day():
    rows = re.findall(r"^\| (\d+):(\d\d) \| (\d+):(\d\d) \| .* \| (\d+) \|$", GUIDE, re.MULTILINE)
    for from_hour, from_minute, to_hour, to_minute, minutes in rows:
        assert (int(to_hour) - int(from_hour)) * 60 + int(to_minute) - int(from_minute) == int(
            minutes
        )
    assert len(rows) == 8


def find_make_commands(text: str) -> list[str]:
    return re.findall(r"\bmake ([a-z-]+)\b(?= |$|\n|\")", text)


def test_no_step_of_a_workflow_fails_unseen():
    unseen = [
        file.name for file in WORKFLOWS if "continue-on-error" in file.read_text(encoding="utf-8")
    ]
    assert WORKFLOWS and unseen == []


def test_a_site_without_its_tab_is_published_only_on_purpose():
    (file,) = [file for file in WORKFLOWS if file.name == "site.yml"]
    (job, _publish) = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "make site" in step.get("run", "")]
    on_purpose = "vars.SITE_WITHOUT_TAB != 'yes' && 'PYODIDE=build/pyodide' || ''"
    assert len(commands) == 1 and on_purpose in commands[0]
    assert [step["if"] for step in job["steps"] if "make pyodide" in step.get("run", "")] == [
        "vars.SITE_WITHOUT_TAB != 'yes'"
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_commands_that_are_there_and_actions_of_a_fixed_commit(workflow):
    data = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    steps = [step for job in data["jobs"].values() for step in job["steps"]]
    assert data["permissions"] == {"contents": "read"} or "pages" in data["permissions"]
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), (
                f"{step['uses']}: a tag can be moved, a commit cannot"
            )
        for target in find_make_commands(step.get("run", "")):
            assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    assert all("timeout-minutes" in job for job in data["jobs"].values())


def test_a_runner_of_ones_own_never_runs_a_pull_request():
    for workflow in WORKFLOWS:
        data = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        if any("self-hosted" in job["runs-on"] for job in data["jobs"].values()):
            # YAML 1.1 reads "on" as true
            assert not {"pull_request", "pull_request_target"} & data[True].keys()


def test_the_lines_for_gitlab_are_yaml_with_commands_that_are_there():
    (lines,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    jobs = yaml.safe_load(lines)
    assert jobs.keys() == {"nbval", "nbval-gpu"}
    for job in jobs.values():
        for line in job["script"]:
            assert re.search(rf"^{find_make_commands(line)[0]}:", MAKEFILE, re.MULTILINE)


def test_a_commit_is_checked_by_what_make_lint_runs():
    hooks = yaml.safe_load((paths.ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))[
        "repos"
    ][0]["hooks"]
    entries = {hook["entry"].replace(" --force-exclude", "") for hook in hooks}
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    wanted = {
        line.strip().removeprefix("@$(VENV)/").removesuffix(" .") for line in lint.splitlines()
    }
    assert {entry.removeprefix(".venv/bin/") for entry in entries} == wanted


def test_the_pins_are_moved_where_they_stand():
    settings = json.loads((paths.ROOT / "renovate.json").read_text(encoding="utf-8"))
    (pattern,) = settings["pip_requirements"]["managerFilePatterns"]
    assert [
        path.name for path in paths.ROOT.iterdir() if re.search(pattern.strip("/"), path.name)
    ] == ["constraints.txt"]


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_and_names_its_fields_once(form):
    data = yaml.safe_load(form.read_text(encoding="utf-8"))
    fields = [part for part in data["body"] if part["type"] != "markdown"]
    assert (
        data["name"]
        and data["description"].endswith(".")
        and len({part["id"] for part in fields}) == len(fields) > 2
    )
    assert any(part.get("validations", {}).get("required") for part in fields)


def test_the_citation_names_the_version():
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == course_lib.__version__
