"""Which line of a learner's file a verdict shows: the one that the evidence points to, or none."""

from __future__ import annotations

import ast
import textwrap

import pytest

import course_lib
from course_lib import catalog
from course_lib.catalog import mutants, texts
from course_lib.grading.check import check
from course_lib.grading.submission import places
from course_lib.grading.submission.places import Span

COPY, NORM = catalog.get("00a"), catalog.get("01a")
interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a compiled kernel's error has a line, and no columns"
)


def marked(text: str, span: Span | None) -> str | None:
    return span and text.encode().split(b"\n")[span.line - 1][span.start : span.end].decode()


# ---- from the code alone -------------------------------------------------------------------------

STORES = {
    "one": ("tl.store(y_ptr + 1, x)", "tl.store(y_ptr + 1, x)"),
    "one, its pointer named": (
        "tl.store(value=x, pointer=y_ptr)",
        "tl.store(value=x, pointer=y_ptr)",
    ),
    "a method": ("y_ptr.store(x)", "y_ptr.store(x)"),
    "none": ("pass", None),
    "two": ("tl.store(y_ptr, x)\n    tl.store(y_ptr + 8, x)", None),
    "one, and an atomic": ("tl.store(y_ptr, x)\n    tl.atomic_add(y_ptr, x)", None),
    "an atomic": ("tl.atomic_add(y_ptr, x)", None),
    "through a name of its own": ("here = y_ptr + 1\n    tl.store(here, x)", None),
    "y is what is stored": ("tl.store(x_ptr, tl.load(y_ptr))", None),
    "one, and a load": ("x = tl.load(y_ptr)\n    tl.store(y_ptr, x)", "tl.store(y_ptr, x)"),
}


@pytest.mark.parametrize(("body", "found"), STORES.values(), ids=STORES)
def test_the_store_through_a_pointer_is_shown_if_it_is_the_only_one(body, found):
    text = f"@triton.jit\ndef kernel(x_ptr, y_ptr, n):\n    {body}\n"
    assert marked(text, places.find_store(ast.parse(text), ("kernel",), "kernel", 1)) == found


def test_a_pointer_goes_by_its_position_and_other_entry_points_do_not_count():
    text = "def first(a, out):\n    tl.store(out, 1)\ndef second(b, out):\n    tl.store(out, 2)\n"
    tree, names = ast.parse(text), ("first", "second")
    assert [marked(text, places.find_store(tree, names, name, 1)) for name in names] == [
        "tl.store(out, 1)",
        "tl.store(out, 2)",
    ]
    assert places.find_store(tree, ("first",), "first", 1) is None, (
        "the other may be a helper, and then two lines store"
    )
    assert places.find_store(tree, names, "first", 7) is None


MAKINGS = {
    "one assignment": ("z = a + 1\n    tl.store(y_ptr, z)", "z = a + 1"),
    "with a type": ("z: int = a + 1\n    tl.store(y_ptr, z)", "z: int = a + 1"),
    "a method": ("z = a + 1\n    y_ptr.store(z, mask=m)", "z = a + 1"),
    "by keywords": ("z = a + 1\n    tl.store(value=z, pointer=y_ptr)", "z = a + 1"),
    "cast": ("z = a + 1\n    tl.store(y_ptr, z.to(tl.float32).to(tl.float16))", "z = a + 1"),
    "handed on": (
        "z = a + 1\n    out = z.to(tl.float16)\n    y = out\n    tl.store(y_ptr, y)",
        "z = a + 1",
    ),
    "in the store": ("tl.store(y_ptr, a + 1)", None),
    "in two steps": ("z = a\n    z += 1\n    tl.store(y_ptr, z)", None),
    "in two branches": (
        "if a:\n        z = 1\n    else:\n        z = 2\n    tl.store(y_ptr, z)",
        None,
    ),
    "two at a time": ("z, u = a\n    tl.store(y_ptr, z)", None),
    "by a loop": ("for z in a:\n        tl.store(y_ptr, z)", None),
    "an argument": ("tl.store(y_ptr, n)", None),
    "an argument, assigned to": ("n = n + 1\n    tl.store(y_ptr, n)", None),
    "of itself": ("z = z\n    tl.store(y_ptr, z)", "z = z"),
    "stored twice": ("z = a + 1\n    tl.store(y_ptr, z)\n    tl.store(y_ptr + 8, z)", None),
    "a constant": ("tl.store(y_ptr, 0)", None),
    "nothing": ("tl.store(y_ptr)", None),
}


@pytest.mark.parametrize(("body", "found"), MAKINGS.values(), ids=MAKINGS)
def test_the_assignment_that_makes_what_is_stored_is_shown_if_it_is_the_only_one(body, found):
    text = f"@triton.jit\ndef kernel(x_ptr, y_ptr, n):\n    {body}\n"
    assert (
        marked(text, places.find_assignment_of_stored(ast.parse(text), ("kernel",), "kernel", 1))
        == found
    )


MADE_AND_RETURNED = {
    "the second of two": ("a = x\n    b = a + 1\n    return a * 2, b.to(x.dtype)", "b = a + 1"),
    "three of them": ("b = x + 1\n    return x, b, b", None),
    "no tuple": ("b = x, x\n    return b", None),
    "in the return": ("return x, x + 1", None),
    "two returns": ("b = x + 1\n    if x:\n        return x, b\n    return b, b", None),
    "none": ("b = x + 1", None),
    "nothing": ("return", None),
}


@pytest.mark.parametrize(("body", "found"), MADE_AND_RETURNED.values(), ids=MADE_AND_RETURNED)
def test_the_assignment_that_makes_what_is_returned_is_shown_if_it_is_the_only_one(body, found):
    text = f"def f(x):\n    {body}\n"
    assert marked(text, places.find_assignment_of_returned(ast.parse(text), "f", 1, 2)) == found


RETURNS = {
    "one": ("return x + 1", "return x + 1"),
    "none": ("x + 1", None),
    "two": ("if x:\n        return 1\n    return 2", None),
    "one, and one of a function inside": (
        "def inner():\n        return 1\n    return inner()",
        "return inner()",
    ),
    "one in a loop": ("for i in x:\n        return i", "return i"),
}


@pytest.mark.parametrize(("body", "found"), RETURNS.values(), ids=RETURNS)
def test_the_return_is_shown_if_it_is_the_only_one(body, found):
    text = f"def other(x):\n    return 0\ndef f(x):\n    {body}\n"
    assert marked(text, places.find_return(ast.parse(text), "f")) == found


def test_an_access_is_marked_where_the_line_has_one_of_its_kind():
    text = "x = tl.load(a) + tl.load(b)\ntl.store(y, tl.load(c))\nx = 1\n"
    tree = ast.parse(text)
    assert places.find_access(tree, 1, "load") == Span(1), "two of them: the line alone"
    assert marked(text, places.find_access(tree, 2, "load")) == "tl.load(c)"
    assert marked(text, places.find_access(tree, 2, "store")) == "tl.store(y, tl.load(c))"
    assert places.find_access(tree, 2, "race") == Span(2) and places.find_access(
        tree, 3, "load"
    ) == Span(3)


def test_columns_are_characters_and_lines_are_pythons():
    text = "a = 1  # \x0c \u2028\r\nb = 'ä☃'; c = wrong\r\n\r\n"
    node = ast.parse(text).body[2].value
    found = places.make_place("mine.py", text, places.find_span(node))
    assert (found.line, found.source, found.source[found.start : found.end]) == (
        2,
        "b = 'ä☃'; c = wrong",
        "wrong",
    )
    for line in (0, -1, 3, 4, 99):  # not there, or empty
        assert places.make_place("mine.py", text, Span(line)) is None


def test_of_a_line_without_end_the_part_around_the_mark_is_kept():
    text = "x = [" + "0, " * 5000 + "wrong]\n"
    found = places.make_place(
        "mine.py", text, Span(1, text.index("wrong"), text.index("wrong") + 5)
    )
    assert len(found.source) <= 500 and found.source[found.start : found.end] == "wrong"


def test_columns_that_a_submission_made_up_do_no_harm():
    for start, end in ((-7, 3), (5, 2), (10**9, 10**9 + 1), (0, -5)):
        found = places.make_place("mine.py", "x = 1\n", Span(1, start, end))
        assert 0 <= found.start < found.end


# ---- from a check --------------------------------------------------------------------------------


def edited(exercise, *edits: tuple[str, str]) -> str:
    text = texts.read_solution(exercise)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


STORE = "    tl.store(y_ptr + offsets, x, mask=mask)\n"
LAST = "    return y"
KERNELS = {
    "a bracket lost": (edited(COPY, (STORE, STORE.replace("mask)", "mask"))), "(", ""),
    "a name that is not there": (edited(COPY, (STORE, STORE.replace(" x,", " xx,"))), "xx", ""),
    "what a kernel cannot do": (edited(COPY, (STORE, "    x = open('f')\n" + STORE)), "open", ""),
    "an import that fails": (edited(COPY, ("import triton\n", "import triton\nimport numpyy\n")),
        "import numpyy", ""),
    "a lost decorator": (edited(COPY, ("@triton.jit\n", "")), "def copy_kernel(", ""),
    "a store outside": (edited(COPY, (STORE, "    tl.store(y_ptr + offsets, x)\n")),
        "tl.store(y_ptr + offsets, x)", ""),
    "a store in two lines": (
        edited(COPY, (STORE, "    tl.store(\n        y_ptr + offsets, x)\n")), "tl.store(", ""),
    "a wrong value": (edited(COPY, (STORE, STORE.replace(" x,", " x + 1,"))),
        "tl.store(y_ptr + offsets, x + 1, mask=mask)", "y is stored here"),
    "a wrong value, made before": (edited(COPY,
        (STORE, "    z = x + 1\n" + STORE.replace(" x,", " z,"))), "z = x + 1", "y is made here"),
    "made before, never written": (
        edited(COPY, (STORE, "    z = x + 1\n    if n < 0:\n    " + STORE.replace(" x,", " z,"))),
        STORE.strip().replace(" x,", " z,"),
        "y is stored here",
    ),
    "never written": (edited(COPY, (STORE, "    if n < 0:\n    " + STORE)), STORE.strip(),
        "y is stored here"),
    "never stored": (edited(COPY, (STORE, "")), None, ""),
    "stored twice, wrong": (edited(COPY, (STORE, STORE + STORE.replace(" x,", " x + 1,"))), None,
        ""),
    "an input changed": (edited(COPY,
        (STORE, STORE + STORE.replace("y_ptr", "x_ptr").replace(" x,", " 0,"))),
        "tl.store(x_ptr + offsets, 0, mask=mask)", ""),  # the launch was seen to write there
    "a block for a condition": (
        edited(COPY, (STORE, "    if offsets < n + 8:\n    " + STORE.replace("mask)",
            "offsets < n)"))), "offsets < n + 8", ""),
    "not for a compiler": (edited(COPY, (STORE, STORE + "    for _ in range(1):\n        break\n")),
        "b", ""),
}  # fmt: skip


@interpreted
@pytest.mark.parametrize(("text", "mark", "label"), KERNELS.values(), ids=KERNELS)
def test_a_kernels_verdict_shows_the_line_of_the_learners_file(tmp_path, text, mark, label):
    file = tmp_path / "mine.py"
    text = "# ☃ \x0c\n# a note of mine\n" + text
    file.write_text(text.replace("\n", "\r\n"), newline="")
    verdict = check(COPY, file)
    assert not verdict.passed, verdict.message
    if mark is None:
        assert verdict.place is None
        return
    place = verdict.place
    assert place.source == text.split("\n")[place.line - 1] and place.file == str(file)
    assert (place.source[place.start : place.end], place.label) == (mark, label), verdict.message
    if verdict.status == "error" or verdict.cause == "kernel_raised":
        assert f"line {place.line}" in verdict.message


@interpreted
def test_an_exception_of_a_kernel_is_marked_to_the_column(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(edited(COPY, (STORE, "    x = x + tl.arange(0, 3)\n" + STORE)))
    place = check(COPY, file).place
    assert place.source[place.start : place.end] == "tl.arange(0, 3)"


def test_an_error_of_a_kernel_shows_its_line_on_every_machine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(edited(COPY, (STORE, "    tl.static_assert(BLOCK < 0, 'mine')\n" + STORE)))
    verdict = check(COPY, file)
    assert (
        verdict.cause == "kernel_raised"
        and verdict.place.source.strip() == "tl.static_assert(BLOCK < 0, 'mine')"
    )


SIGNATURE = next(line for line in texts.read_solution(NORM).splitlines() if line.startswith("def "))
FUNCTIONS = {
    "a wrong value, one return": ("return x", "return x", "y is returned here"),
    "a wrong value, made before": (
        "z = x + 1\n    return z.to(x.dtype)",
        "z = x + 1",
        "y is made here",
    ),
    "a wrong value, two returns": ("if x.ndim > 5:\n        return x\n    return x", None, ""),
    "of another shape": ("return x.sum()", "return x.sum()", ""),
    "nothing returned": ("x + 1", SIGNATURE, ""),
    "an exception": ("z = x.reshape(-1, 8191)\n    return z", "x.reshape(-1, 8191)", ""),
}


@pytest.mark.parametrize(("body", "mark", "label"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_functions_verdict_shows_its_line(tmp_path, body, mark, label):
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(f"# a note\nimport torch\n\n\n{SIGNATURE}\n    {body}\n"))
    place = check(NORM, file).place
    assert (place and (place.source[place.start : place.end], place.label)) == (
        mark and (mark, label)
    )
    assert place is None or place.source == file.read_text().split("\n")[place.line - 1]


def test_a_race_shows_a_line_of_the_race(tmp_path):
    lock, file = catalog.get("12a"), tmp_path / "mine.py"
    file.write_text(
        mutants.make_text(
            lock, next(entry for entry in mutants.read_mutants(lock) if entry["id"] == "no_lock")
        )
    )
    verdict = check(lock, file)
    assert verdict.cause == "race" and f"line {verdict.place.line}" in verdict.first.words
    assert any(word in verdict.place.source for word in ("tl.load", "tl.store", "tl.atomic_"))


def test_a_saved_statistic_of_another_name_is_shown_where_it_is_stored():
    """``var`` in the place of rstd: that line of ``var`` is right, and does not make rstd."""
    tree = ast.parse("def k(x_ptr, rstd_ptr):\n    var = x_ptr + 1\n    tl.store(rstd_ptr, var)\n")
    of_store = tree, ("k",), "k", 1
    assert places.find_assignment_of_stored(*of_store).line == 2
    assert places.find_assignment_of_stored(*of_store, frozenset({"mean", "var"})) is None
