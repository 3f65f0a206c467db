"""The kept facts of the compiler cannot be stale: their key covers all that they depend on, and the
sweep compares them."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import compiler_facts
import pytest

from course_lib.compiler.kernel_source import collect

KERNEL = """import triton
import triton.language as tl

FACTOR = tl.constexpr({factor})


@triton.jit
def scale(x):
    return x * {expression}


@triton.jit
def scaling_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, scale(tl.load(x_ptr + cols)))
"""


def make_key(
    folder: Path, *, head: str = "", factor: str = "2.0", expression: str = "FACTOR", **options
) -> str:
    """Return the key of the kernel above, with a helper function and a global of that text."""
    file = folder / f"kernel_{len(list(folder.iterdir()))}.py"
    file.write_text(head + KERNEL.format(factor=factor, expression=expression))
    described = importlib.util.spec_from_file_location(file.stem, file)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    question = {
        "name": "scaling_kernel",
        "units": collect(module.scaling_kernel).units,
        "num_warps": 4,
    }
    return compiler_facts.make_key(
        compiler_facts.drop_line_numbers(question | options), compiler_facts.COMPILER
    )


def test_a_key_changes_with_a_helper_a_global_and_the_launch_and_not_with_the_line(tmp_path):
    key = make_key(tmp_path)
    assert key == make_key(tmp_path) == make_key(tmp_path, head="# a line above\n")
    others = [
        make_key(tmp_path, expression="FACTOR + 1"),
        make_key(tmp_path, factor="3.0"),
        make_key(tmp_path, num_warps=8),
        make_key(tmp_path, named={"BLOCK": {"value": 1024}}),
    ]
    assert len({key, *others}) == 5


def test_a_key_changes_with_triton_and_with_the_sources_of_the_compiler(tmp_path):
    source = tmp_path / "machine.py"
    source.write_text("one")
    keys = {
        compiler_facts.make_key({}, [source]),
        compiler_facts.make_key({}, [source], version="3.9.0"),
    }
    source.write_text("another")
    assert len(keys | {compiler_facts.make_key({}, [source])}) == 3


def test_a_key_covers_every_module_of_the_process_that_compiles():
    names, folder = ["machine"], compiler_facts.COMPILER[0].parent
    for name in names:
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        imported = [
            node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        ]
        parts = [
            module.split(".") for module in imported if module.startswith("course_lib.compiler.")
        ]
        names += [module for _, _, module in parts if module not in names]
    assert sorted(names) == [file.stem for file in compiler_facts.COMPILER]


def test_only_a_fact_that_the_file_does_not_have_is_asked():
    facts, asked = compiler_facts.Facts({"tests/a.py": {"key 1": "kept"}}), []

    def ask(numbers: list[int]) -> list[str]:
        asked.extend(numbers)
        return ["computed"] * len(numbers)

    assert facts.recall("tests/a.py", ["key 1", "key 2"], ask, anew=False) == ["kept", "computed"]
    assert asked == [1] and facts.computed == {"key 2"}
    assert facts.used == {"tests/a.py": {"key 1": "kept", "key 2": "computed"}}


def test_the_sweep_asks_for_every_fact_and_names_the_command_that_renews_one_that_differs():
    facts = compiler_facts.Facts({"tests/a.py": {"key": 64}})
    assert facts.recall(
        "tests/a.py", ["key"], lambda numbers: [64 for _ in numbers], anew=True
    ) == [64]
    with pytest.raises(
        AssertionError,
        match=r"has 64 under key, and the compiler says 8.*--renew-facts tests/a\.py",
    ):
        facts.recall("tests/a.py", ["key"], lambda numbers: [8 for _ in numbers], anew=True)


def test_the_file_is_written_with_a_line_for_each_fact_and_no_fact_of_a_case_that_is_gone():
    stored = {"tests/a.py": {"gone": None}, "tests/b.py": {"key": [1, 0, 0]}}
    text = compiler_facts.write_facts(stored | {"tests/a.py": {"new": "refused", "old": None}})
    assert text.splitlines() == [
        "{",
        '"tests/a.py": {',
        '"new": "refused",',
        '"old": null',
        "},",
        '"tests/b.py": {',
        '"key": [1, 0, 0]',
        "}",
        "}",
    ]
