"""The bundle for a machine without network: what it refuses, and a bundle of small wheels collected
and installed without an index."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import bootstrap
import bundle
from machine import Stop

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def make_wheel(folder: Path, name: str) -> None:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "here = True\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")


def write_facts(folder: Path, **other) -> Path:
    folder.mkdir(exist_ok=True)
    facts = {
        "python": HERE,
        "processor": platform.machine(),
        "torch": False,
        "wheels": [],
        "pins": bootstrap.hash_of_pins(),
    }
    (folder / bundle.FACTS).write_text(json.dumps(facts | other))
    return folder


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"python": "3.99"}, "this bundle is for Python 3.99"),
        ({"processor": "riscv64"}, "on riscv64; this is Python"),
        ({"wheels": ["x-1.0-py3-none-any.whl"]}, "lacks 1 of its 1 wheels, such as x-1.0"),
        ({"pins": "of another commit"}, "was collected for another version of the course"),
    ],
)
def test_a_bundle_that_does_not_fit_is_refused_before_anything_is_changed(tmp_path, other, words):
    with pytest.raises(Stop, match=words):
        bundle.read_facts(str(write_facts(tmp_path / "bundle", **other)))


def test_no_bundle_and_a_folder_with_something_in_it_are_refused(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert (
        bundle.main(["install", str(tmp_path)]) == 1
        and "holds no whole bundle" in capsys.readouterr().err
    )
    assert (
        bundle.main(["collect", str(tmp_path)]) == 1
        and "nothing is overwritten" in capsys.readouterr().err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_environment_that_is_there_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "mine").touch()
    folder = write_facts(tmp_path / "bundle")
    monkeypatch.setattr(bundle, "ROOT", str(tmp_path))
    with pytest.raises(Stop, match="is left alone"):
        bundle.install(str(folder))
    assert [path.name for path in (tmp_path / ".venv").iterdir()] == ["mine"]


def test_a_python_without_torch_is_named_with_the_remedy(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with pytest.raises(
        Stop, match=r"cannot import torch: .*No module named 'torch'.*BUNDLE_ARGS=--torch"
    ):
        bundle.import_versions(str(tmp_path / "bare" / "bin" / "python"), bundle.OWN)


def test_torch_and_its_libraries_come_only_when_asked_for(monkeypatch):
    assert not {"torch", "triton"} & set(bundle.list_requirements(torch=False))
    assert {"torch", "triton", "nbval", "jupyterlab"} <= set(bundle.list_requirements(torch=True))
    words = "jinja2==3\nnvidia-cublas==13\ntorch==2\ntriton==3 ; x\n"
    done = subprocess.CompletedProcess([], 0, words, "")
    monkeypatch.setattr(bundle.subprocess, "run", lambda *given, **more: done)
    assert bundle.resolve([], HERE, "x86_64", {}, torch=False) == ["jinja2==3"]
    assert bundle.resolve([], HERE, "x86_64", {}, torch=True) == [
        "jinja2==3",
        "nvidia-cublas==13",
        "torch==2",
        "triton==3",
    ]


def test_pip_is_told_every_platform_that_glibc_228_takes():
    tags = bundle.name_platforms("x86_64")
    assert {
        "manylinux_2_28_x86_64",
        "manylinux_2_17_x86_64",
        "manylinux2014_x86_64",
        "linux_x86_64",
    } <= set(tags)
    assert "manylinux_2_29_x86_64" not in tags and len(tags) == len(set(tags))


@pytest.mark.slow
def test_small_wheels_are_collected_and_installed_without_an_index(tmp_path, monkeypatch, capfd):
    """As `collect` and `install` do it, but for a course whose one dependency is a wheel of a
    folder."""
    wheels, course, folder = tmp_path / "wheels", tmp_path / "course", tmp_path / "bundle"
    wheels.mkdir()
    course.mkdir()
    make_wheel(wheels, "tiny")
    (course / "constraints.txt").write_text("tiny==1.0\n")
    (course / "pyproject.toml").write_text(
        '[project]\nname = "course"\nversion = "1"\ndependencies = ["tiny"]\noptional-dependencies'
        " = { lab = [] }\n"
    )
    for module in (bundle, bootstrap):
        monkeypatch.setattr(module, "ROOT", str(course))
    monkeypatch.setattr(bundle, "RUNNERS", ())
    monkeypatch.setattr(bundle, "BUILD", ())
    monkeypatch.setattr(bundle, "OWN", ())
    monkeypatch.setattr(bundle, "LESSONS_IMPORT", ("tiny",))
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert (
        bundle.main(["collect", str(folder), "--python", HERE, "--processor", platform.machine()])
        == 0
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "bundle.json",
        "requirements.txt",
        "tiny-1.0-py3-none-any.whl",
    ]
    run = bundle.run
    # it needs setuptools
    monkeypatch.setattr(
        bundle, "run", lambda command: None if "--editable" in command else run(command)
    )
    for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name)
    assert bundle.main(["install", str(folder)]) == 0, capfd.readouterr().err
    python = course / ".venv" / "bin" / "python"
    assert (
        subprocess.run(
            [python, "-c", "import tiny; assert tiny.here"], cwd=tmp_path, check=False
        ).returncode
        == 0
    )
    monkeypatch.setattr(bootstrap, "VENV", str(course / ".venv"))
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", str(python))
    assert bootstrap.find_state(None, ["dev"], None) == "ready", "`make nbval-gpu` asks no network"
