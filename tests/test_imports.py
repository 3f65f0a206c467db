"""Imports point one way: a room imports the rooms below it, and none above. MAY_IMPORT is the whole
of it."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.base import paths

PACKAGE = paths.ROOT / "course_lib"
MODULES = {
    ".".join(("course_lib", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in PACKAGE.rglob("*.py")
    # right solutions of exercises: data, which nothing imports
    if path.parent.name not in ("right", "unusual")
}


def imported(source: str, module: str, is_package: bool) -> set[str]:
    """Every module that ``source`` imports, at the top or inside a function; ``from a import b``
    counts as a and a.b."""
    found = set()
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif (
            isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "import_module"
        ):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    return found


@functools.cache
def list_imports(module: str) -> frozenset[str]:
    """Return the name of everything that a module of the course imports."""
    path = MODULES[module]
    return frozenset(imported(path.read_text(encoding="utf-8"), module, path.name == "__init__.py"))


def of_the_course(module: str) -> set[str]:
    """The modules of the course that ``module`` imports itself."""
    return {name for name in list_imports(module) if name in MODULES and name != "course_lib"}


def within(room: str) -> list[str]:
    return [
        name
        for name in MODULES
        if name == f"course_lib.{room}" or name.startswith(f"course_lib.{room}.")
    ]


def room_of(module: str) -> str:
    """The longest name in MAY_IMPORT that ``module`` lies in, without ``course_lib``."""
    name = module.removeprefix("course_lib.")
    while name not in MAY_IMPORT:
        name = name.rpartition(".")[0]
        assert name, f"{module} lies in no room: add it to MAY_IMPORT, or move it"
    return name


# What each room imports, directly. The order is that of docs/architecture.md: a room stands above
# those it imports.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "tab": set(),
    "norms.reference": set(),  # the oracles stand alone, so that nothing they judge can bend them
    "norms.statistics": set(),
    "sandbox": {"base"},
    "compiler": {"base", "sandbox"},
    "interpreter": {"base"},
    "launching": {"base", "sandbox", "interpreter"},
    "kernels": set(),
    "norms": {"norms.reference", "norms.statistics", "kernels"},
    "catalog": {"base"},
    "bench": {"base", "kernels", "norms", "norms.reference"},
    "tuning": {"base", "compiler", "kernels", "bench"},
    "grading.verdict": {"base"},
    "grading.cases": {"base", "compiler", "launching", "tuning"},
    "grading.kind": {"base", "launching", "sandbox"},  # imports the kinds by name
    "grading.submission": {"base", "catalog", "sandbox", "grading.verdict", "grading.kind"},
    "grading.execution": {"base", "compiler", "interpreter", "launching", "norms", "sandbox",
        "grading.kind", "grading.cases", "grading.submission", "grading.verdict"},
    "grading.judging": {"base", "catalog", "compiler", "launching", "grading.cases",
        "grading.kind", "grading.submission", "grading.verdict"},
    "grading.kinds": {"base", "launching", "sandbox", "grading.kind", "grading.submission",
        "grading.judging"},
    "exercises": {"base", "catalog", "compiler", "norms.reference", "norms.statistics", "tuning",
        "grading.cases", "grading.judging"},
    "grading": {
        "base", "catalog", "compiler", "launching", "sandbox", "tuning", "grading.verdict",
        "grading.cases", "grading.kind", "grading.submission", "grading.execution",
        "grading.judging", "exercises",
    },
    "grading.public": {  # the face of the grader, for lessons
        "catalog", "sandbox", "grading", "grading.verdict", "grading.cases", "grading.submission",
        "grading.kind", "grading.execution", "grading.judging",
        "exercises",
    },
    "learner": {"base", "catalog", "grading.verdict"},
    "classroom": {"base", "catalog", "sandbox", "grading", "grading.verdict", "grading.cases",
        "grading.kind", "grading.judging"},
    "hunt": {"base", "catalog", "grading.public", "learner"},
    "doctor": {"base", "interpreter"},
    "lessons": {
        "base", "sandbox", "interpreter", "launching", "compiler", "kernels", "norms",
        "norms.reference", "norms.statistics", "catalog", "grading.public",
        "learner", "bench", "tuning", "hunt",
    },
    "authoring": {
        "compiler",
        "base", "catalog", "learner", "lessons", "bench", "hunt", "grading", "grading.verdict",
        "grading.kind", "grading.cases", "grading.submission", "grading.execution",
        "grading.judging", "exercises",
    },
    "cli": {"base", "sandbox", "catalog", "learner", "grading", "grading.verdict", "grading.cases",
        "grading.kind", "bench", "tuning", "classroom", "doctor", "lessons", "authoring"},
}  # fmt: skip


def test_a_room_imports_only_the_rooms_below_it():
    offenders = []
    for module in sorted(MODULES.keys() - {"course_lib"}):
        room = room_of(module)
        # a package's own face ("grading.cases") is named by every import of something inside it,
        # so the innermost name counts
        named = of_the_course(module)
        inner = {name for name in named if not any(other.startswith(f"{name}.") for other in named)}
        forbidden = {room_of(name) for name in inner} - {room} - MAY_IMPORT[room]
        offenders += [f"{module} imports {other}" for other in sorted(forbidden)]
    assert offenders == []


def test_a_lesson_takes_from_the_grader_only_what_its_public_face_offers():
    offenders = []
    for source in sorted(paths.NOTEBOOK_SOURCES.glob("*.py")):
        names = imported(source.read_text(encoding="utf-8"), source.stem, False)
        modules = {
            name for name in names if name in MODULES and name.startswith("course_lib.grading")
        }
        inside = modules - {"course_lib.grading", "course_lib.grading.public"}
        offenders += [f"{source.name} imports {name}" for name in sorted(inside)]
    assert offenders == []


def test_rooms_stand_above_one_another():
    graphlib.TopologicalSorter(MAY_IMPORT).prepare()  # raises CycleError


def test_nothing_stands_loose_but_the_package_itself():
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_nothing_imports_itself_by_way_of_others():
    # a package's own __init__ is left out: it names its modules, and they name it as they name one
    # another
    modules = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    graph = {name: of_the_course(name) & modules for name in modules}
    # raises CycleError, which names the modules of the circle
    graphlib.TopologicalSorter(graph).prepare()


def test_only_the_interpreter_package_touches_tritons_private_interpreter():
    touching = {
        name
        for name in MODULES
        if any(i.startswith("triton.runtime.interpreter") for i in list_imports(name))
    }
    assert touching and touching <= set(within("interpreter"))


@pytest.mark.parametrize(
    "module",
    [
        "cli.app",
        "cli.verdict_view",
        "learner.progress",
        "learner.workspace",
        "learner.update",
        "catalog.exercise",
        "catalog.cut",
        "catalog.texts",
        "base.paths",
        "base.files",
        "base.errors",
        "base.runtime",
    ],
)
def test_what_the_command_line_loads_first_has_no_heavy_import(module):
    source = MODULES[f"course_lib.{module}"].read_text(encoding="utf-8")
    top = ast.parse(source).body
    names = {
        n
        for node in top
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for n in imported(ast.unparse(node), module, False)
    }
    assert not {name.split(".")[0] for name in names} & {
        "torch",
        "triton",
        "matplotlib",
        "ipywidgets",
        "numpy",
    }


def test_a_picture_loads_when_it_is_touched():
    code = """
import sys, course_lib.lessons as lessons
heavy = ("matplotlib", "ipywidgets", "course_lib.lessons.pictures", "course_lib.lessons.figures", "course_lib.grading.public", "course_lib.bench")
print([name for name in sys.modules if name.startswith(heavy)])
from course_lib.lessons.lesson00.copy_map.model import make_data
print(callable(lessons.copy_map), [name for name in lessons._LAZY if not callable(getattr(lessons, name))])
"""  # noqa: E501
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=paths.ROOT
    )
    assert said.stdout.splitlines() == ["[]", "True []"]


def test_the_course_draws_without_matplotlib():
    drawing = {
        name for name in MODULES if any(i.split(".")[0] == "matplotlib" for i in list_imports(name))
    }
    assert not drawing


def test_kernels_and_reference_import_no_optional_library():
    allowed = {
        "__future__",
        "torch",
        "triton",
        "numpy",
        "math",
        "dataclasses",
        "course_lib",
        "typing",
        "collections",
        "functools",
        "inspect",
        "operator",
        "struct",
    }
    for module in [*within("kernels"), *within("norms.reference")]:
        assert {name.split(".")[0] for name in list_imports(module)} <= allowed, module


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "def f():\n    from course_lib.lessons import panel",
            {"course_lib.lessons", "course_lib.lessons.panel"},
        ),
        ("from . import panel", {"course_lib.part", "course_lib.part.panel"}),
        (
            "from ..lessons.panel import x",
            {"course_lib.lessons.panel", "course_lib.lessons.panel.x"},
        ),
        ("import_module('course_lib.cli')", {"course_lib.cli"}),
    ],
)
def test_the_test_itself_sees_every_kind_of_import(source, found):
    assert imported(source, "course_lib.part.module", False) == found


def test_the_package_is_where_this_test_looks():
    assert (
        Path(PACKAGE / "grading" / "execution" / "child.py") in MODULES.values()
        and len(MODULES) > 20
    )
