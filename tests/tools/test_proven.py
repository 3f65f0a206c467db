"""A stage of CI is left out only while its files are those of a proof that is less than a week
old."""

from __future__ import annotations

import datetime
import subprocess

import pytest

from tools import proven


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a git checkout with the files that the pins depend on, in which they are proven
    today."""
    monkeypatch.setattr(proven, "ROOT", tmp_path)
    monkeypatch.setattr(proven, "RECORD", tmp_path / ".ci" / "proven.json")
    monkeypatch.delenv("CI_ALL", raising=False)
    for name in (*proven._INPUTS["pins"][0], ".ci/run", "README.md"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(name)
    subprocess.run(("git", "init", "--quiet"), cwd=tmp_path, check=True)
    subprocess.run(("git", "add", "--all"), cwd=tmp_path, check=True)
    assert proven.main(["record", "pins"]) == 0
    return tmp_path


def test_a_proof_holds_for_its_files_and_for_a_week(checkout):
    today = datetime.date.today()
    assert proven.describe_need("pins", today) == ""
    (checkout / "README.md").write_text("other words")
    assert proven.describe_need("pins", today) == ""
    assert "8 days old" in proven.describe_need("pins", today + datetime.timedelta(days=8))
    assert "no proof yet" in proven.describe_need("package", today)


@pytest.mark.parametrize("change", ["other text", None])
def test_a_changed_file_needs_a_new_proof(checkout, change):
    file = checkout / "constraints.txt"
    file.write_text(change) if change else file.unlink()
    assert "files have changed" in proven.describe_need("pins", datetime.date.today())


def test_a_release_runs_every_stage(checkout, monkeypatch):
    monkeypatch.setenv("CI_ALL", "1")
    assert proven.main(["need", "pins"]) == 0


def test_every_file_of_a_stage_is_there():
    """A file that was renamed would count for nothing."""
    for contents, folders in proven._INPUTS.values():
        assert [name for name in (*contents, *folders) if not proven._list_tracked((name,))] == []


def test_a_stage_that_is_unknown_is_refused(capsys):
    assert (
        proven.main(["need", "pin"]) == 2 and "pins, commands, package" in capsys.readouterr().err
    )
