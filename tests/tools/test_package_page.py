"""The page of the package in an index: README, with links and pictures that lead somewhere from
there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/somebody/course"


@pytest.fixture
def write_page():
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["write_page"]


def list_targets(page: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", page) + re.findall(r'(?:src|srcset)="([^"]+)"', page)


def test_without_an_address_words_stay_and_what_leads_nowhere_goes(write_page) -> None:
    page = write_page((ROOT / "README.md").read_text(encoding="utf-8"), "")
    assert [target for target in list_targets(page) if not target.startswith("https://")] == []
    assert (
        "00 start here: your first kernel" in page
        and "MIT licence." in page
        and "<picture" not in page
        and "Recorded from" not in page
    )


def test_with_an_address_every_link_and_picture_leads_to_a_file_of_the_repository(
    write_page,
) -> None:
    page = write_page((ROOT / "README.md").read_text(encoding="utf-8"), ADDRESS)
    own = [target for target in list_targets(page) if target.startswith(ADDRESS)]
    assert [target for target in list_targets(page) if not target.startswith("https://")] == []
    assert f"{ADDRESS}/blob/main/notebooks/00_start_here.ipynb" in own
    assert f"{ADDRESS}/raw/main/docs/images/course-light.webp" in own
    for target in own:
        file = re.sub(rf"{ADDRESS}/(blob|raw)/main/", "", target.partition("#")[0])
        assert (ROOT / file).is_file(), target


def test_an_anchor_stays_and_a_link_around_a_picture_is_kept_whole(write_page) -> None:
    assert write_page("[a](#b) [c](d.md#e)", "") == "[a](#b) c"
    badge = "[![Open](https://x/badge.svg)](https://x/open)"
    assert write_page(badge, "") == write_page(badge, ADDRESS) == badge


def test_the_package_takes_its_page_from_there() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "readme" in project["dynamic"] and "readme" not in project
