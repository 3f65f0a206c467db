"""Imports point one way: cli, widgets -> grading, bench -> functional -> kernels -> runtime; reference stands alone."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from course_lib import paths

PACKAGE = paths.ROOT / "course_lib"
MODULES = {
    ".".join(("course_lib", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
FOUNDATION = {"course_lib.paths", "course_lib.errors", "course_lib.files", "course_lib.runtime"}


def imported(source: str, module: str, is_package: bool) -> set[str]:
    """Every module that ``source`` imports, at the top or inside a function; ``from a import b`` counts as a and a.b."""
    found = set()
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "import_module":
            found |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    return found


@functools.cache
def of_the_course(module: str) -> frozenset[str]:
    """The modules of the course that ``module`` imports itself."""
    path = MODULES[module]
    names = imported(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    return frozenset(name for name in names if name in MODULES and name != "course_lib")


def within(part: str) -> list[str]:
    return [name for name in MODULES if name == f"course_lib.{part}" or name.startswith(f"course_lib.{part}.")]


def reaches(module: str, leaving_out: frozenset[str] = frozenset()) -> set[str]:
    """The modules of the course that importing ``module`` may load, over any number of steps."""
    seen, waiting = set(), [module]
    while waiting:
        for name in of_the_course(waiting.pop()) - seen - leaving_out:
            seen.add(name)
            waiting.append(name)
    return seen


def parts(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names}


RULES = [
    ("reference", set(), "anything of the course"),
    ("statistics", set(), "anything of the course"),
    ("kernels", {"grading", "widgets", "bench", "cli", "functional", "modules", "figures", "authoring", "doctor", "progress"}, ""),
    ("functional", {"grading", "widgets", "bench", "cli", "figures", "authoring"}, ""),
    ("grading", {"widgets", "cli", "bench", "figures", "authoring", "doctor", "progress", "update"}, ""),
    ("bench", {"grading", "widgets", "cli", "authoring", "progress"}, ""),
    ("widgets", {"cli", "authoring", "update"}, ""),
    ("interpreter", {"grading", "widgets", "bench", "cli", "kernels", "functional", "progress", "workspace"}, ""),
    ("authoring", {"cli", "update", "progress"}, ""),
]


@pytest.mark.parametrize(("part", "never", "why"), RULES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_part_never_reaches_what_stands_above_it(part, never, why):
    for module in within(part):
        reached = parts(reaches(module)) - {part}
        assert not (reached if why else reached & never), f"{module} reaches {sorted(reached if why else reached & never)}"


@pytest.mark.parametrize("module", sorted(FOUNDATION))
def test_the_foundation_imports_only_itself(module):
    assert of_the_course(module) <= FOUNDATION


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nothing_imports_itself_by_way_of_others(module):
    # a package's own __init__ is left out: it names its modules, and they name it as they name one another
    packages = frozenset(name for name, path in MODULES.items() if path.name == "__init__.py")
    assert module not in reaches(module, packages)


def test_only_the_interpreter_package_touches_tritons_private_interpreter():
    touching = {
        name
        for name, path in MODULES.items()
        if any(
            i.startswith("triton.runtime.interpreter") for i in imported(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
        )
    }
    assert touching and touching <= set(within("interpreter"))


@pytest.mark.parametrize(
    "module", ["cli.app", "cli.verdict_view", "progress", "catalog", "workspace", "paths", "files", "errors", "runtime", "cut", "update"]
)
def test_what_the_command_line_loads_first_has_no_heavy_import(module):
    source = MODULES[f"course_lib.{module}"].read_text(encoding="utf-8")
    top = ast.parse(source).body
    names = {n for node in top if isinstance(node, (ast.Import, ast.ImportFrom)) for n in imported(ast.unparse(node), module, False)}
    assert not {name.split(".")[0] for name in names} & {"torch", "triton", "matplotlib", "ipywidgets", "numpy"}


def test_kernels_and_reference_import_no_optional_library():
    allowed = {"__future__", "torch", "triton", "numpy", "math", "dataclasses", "course_lib", "typing", "collections", "functools"}
    for module in [*within("kernels"), *within("reference")]:
        names = imported(MODULES[module].read_text(encoding="utf-8"), module, MODULES[module].name == "__init__.py")
        assert {name.split(".")[0] for name in names} <= allowed, module


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    from course_lib.widgets import panel", {"course_lib.widgets", "course_lib.widgets.panel"}),
        ("from . import panel", {"course_lib.part", "course_lib.part.panel"}),
        ("from ..widgets.panel import x", {"course_lib.widgets.panel", "course_lib.widgets.panel.x"}),
        ("import_module('course_lib.cli')", {"course_lib.cli"}),
    ],
)
def test_the_test_itself_sees_every_kind_of_import(source, found):
    assert imported(source, "course_lib.part.module", False) == found


def test_the_package_is_where_this_test_looks():
    assert Path(PACKAGE / "grading" / "child.py") in MODULES.values() and len(MODULES) > 20
