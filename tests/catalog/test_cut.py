"""Cutting exercises out of solutions: the marks, the empty blocks, and the real files."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.authoring import exercises as authoring
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog.cut import BEGIN, END, cut
from course_lib.catalog.step_cells import cut_cell

SOLUTIONS = sorted(paths.SOLUTIONS.glob("ex*.py"))


def text(body: str) -> str:
    return textwrap.dedent(body).lstrip("\n")


def cut_of(body: str) -> str:
    return cut(text(body), "ex.py")


def is_task(line: str) -> bool:
    return line.strip().startswith("#")


# ---- the marks -----------------------------------------------------------------------------------


def test_a_repair_keeps_the_given_lines_in_place_of_the_solution():
    assert cut_of("""
        def f(dy, x):
            # BEGIN SOLUTION
            #: One factor is wrong.
            #| if dy.any():
            #|     dw = dy * x
            if dy.any():
                dw = dy * xhat
            # END SOLUTION
            return dw
        """) == text("""
        def f(dy, x):
            # REPAIR: One factor is wrong.
            if dy.any():
                dw = dy * x
            return dw
        """)


def test_a_repair_that_does_not_parse_is_an_authors_slip():
    with pytest.raises(CourseError, match="does not parse"):
        cut_of("""
            # BEGIN SOLUTION
            #: One factor is wrong.
            #| dw = dy *
            dw = dy * xhat
            # END SOLUTION
            """)


def test_a_part_whose_docstring_says_all_gets_no_words_and_no_number_of_lines():
    assert cut_of("""
        def f(x):
            # BEGIN SOLUTION
            #:
            y = x
            return y
            # END SOLUTION
        """).splitlines() == ["def f(x):", "    # YOUR CODE", "    pass"]


def test_a_part_becomes_its_task_with_the_number_of_lines():
    assert cut_of("""
        a = 1
        # BEGIN SOLUTION
        #: Add them.
        # a comment that is not counted

        b = a + 1
        c = b + a
        # END SOLUTION
        d = 4
        """) == text("""
        a = 1
        # YOUR CODE, about 2 lines: Add them.
        d = 4
        """)


def test_one_line_of_code_is_not_about_one_line():
    assert "# YOUR CODE, 1 line: Do it.\n" in cut_of(
        "# BEGIN SOLUTION\n#: Do\n#: it.\nb = 1\n# END SOLUTION\n"
    )


@pytest.mark.parametrize(
    ("cut_text", "width"), [(cut_of, 118), (lambda text: cut_cell(text, "a cell"), 84)]
)
def test_a_long_task_is_wrapped_and_stays_a_comment_at_its_indentation(cut_text, width):
    words = "word " * 60
    result = cut_text(
        f"for a in b:\n    # BEGIN SOLUTION\n    #: {words}\n    c = 1\n    # END SOLUTION\n    d"
        " = 1\n"
    )
    tasks = result.splitlines()[1:-1]
    assert len(tasks) > 1 and all(
        line.startswith("    # ") and len(line) <= width for line in tasks
    )
    assert " ".join(tasks).count("word") == 60


@pytest.mark.parametrize(
    ("solution", "line", "what"),
    [
        ("a = 1\n", None, "no '# BEGIN SOLUTION'"),
        ("# BEGIN SOLUTION\n#: Do.\na = 1\n", 1, "never closed"),
        ("a = 1\n# END SOLUTION\n", 2, "without a"),
        (
            "# BEGIN SOLUTION\n#: Do.\na = 1\n# BEGIN SOLUTION\n#: Do.\nb = 1\n# END SOLUTION\n",
            4,
            "line 1",
        ),
        ("# BEGIN SOLUTION\na = 1\n# END SOLUTION\n", 1, "does not say what"),
        ("a = 1\n# BEGIN SOLUTION\n#: Do.\n# only a comment\n\n# END SOLUTION\n", 2, "no code"),
        ("def f(:\n# BEGIN SOLUTION\n#: Do.\na = 1\n# END SOLUTION\n", None, "does not parse"),
    ],
)
def test_marks_that_do_not_make_sense_are_refused_with_their_line(solution, line, what):
    with pytest.raises(CourseError, match=what) as refused:
        cut(solution, "ex.py")
    assert str(refused.value).startswith("ex.py" if line is None else f"ex.py, line {line}:")


# ---- blocks that cutting leaves empty ------------------------------------------------------------


def test_a_block_that_holds_only_a_part_gets_a_pass():
    assert cut_of("""
        for a in b:
            # BEGIN SOLUTION
            #: Do.
            c = a
            # END SOLUTION
        d = 1
        """).splitlines() == ["for a in b:", "    # YOUR CODE, 1 line: Do.", "    pass", "d = 1"]


def test_a_block_that_keeps_a_statement_gets_none():
    assert "pass" not in cut_of(
        "for a in b:\n    c = 1\n    # BEGIN SOLUTION\n    #: Do.\n    d = 1\n    # END SOLUTION\n"
    )


def test_the_pass_goes_to_the_empty_block_and_not_to_a_part_that_follows_it():
    assert cut_of("""
        def f(a,
              b):
            for c in a:
                while c:
                    # BEGIN SOLUTION
                    #: Inner.
                    c = 1
                    # END SOLUTION
            # BEGIN SOLUTION
            #: Outer.
            d = 1
            # END SOLUTION

        e = 1
        """).splitlines() == [
        "def f(a,",
        "      b):",
        "    for c in a:",
        "        while c:",
        "            # YOUR CODE, 1 line: Inner.",
        "            pass",
        "    # YOUR CODE, 1 line: Outer.",
        "",
        "e = 1",
    ]


def test_both_branches_and_the_end_of_the_file():
    result = cut_of("""
        if a:
            # BEGIN SOLUTION
            #: One.
            b = 1
            # END SOLUTION
        else:
            # BEGIN SOLUTION
            #: Two.
            b = 2
            # END SOLUTION
        """)
    assert result.count("    pass\n") == 2
    ast.parse(result)


plain = st.sampled_from(["a = 1", "b = (a,\n    2)", "f()  # note", "'''two\nlines'''"])


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for part in lines for line in part.split("\n")]


def part(lines: list[str]) -> list[str]:
    return [BEGIN, "#: Do what has to be done here.", *lines, END]


def block(header: str, body: list[list[str]]) -> list[str]:
    return [header, *indented([line for statement in body for line in statement])]


simple = plain.map(lambda s: [s])
parts = st.lists(plain, min_size=1, max_size=3).map(part)
headers = st.sampled_from(["for a in b:", "if a:", "while a:", "def f(a,\n      b):", "with a:"])
statements = st.recursive(
    simple | parts,
    lambda inner: st.builds(block, headers, st.lists(inner, min_size=1, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(statements, min_size=1, max_size=4), parts)
def test_whatever_is_cut_parses_and_solving_it_only_adds_lines(body, last):
    # strings over several lines would change when they are indented: flat lines only
    solution = "\n".join(line for statement in [*body, last] for line in statement) + "\n"
    try:
        ast.parse(solution)
    except SyntaxError:
        return
    exercise = cut(solution)
    ast.parse(exercise)
    # what a repair gives is in the exercise, too
    remaining = iter(solution.replace("#| ", "").splitlines())
    for line in exercise.splitlines():
        assert is_task(line) or line.strip() == "pass" or line in remaining, line


# ---- the course's own files ----------------------------------------------------------------------


def inside_and_outside(solution: str) -> tuple[list[str], list[str]]:
    inside, outside, within = [], [], False
    for line in solution.splitlines():
        if line.strip() in (BEGIN, END):
            within = line.strip() == BEGIN
        elif line.strip().startswith("#|"):
            outside.append(line.replace("#| ", "", 1))  # given, to be repaired
        elif not line.strip().startswith("#"):
            (inside if within else outside).append(line)
    return inside, outside


@pytest.mark.parametrize("file", SOLUTIONS, ids=lambda f: f.stem)
def test_solving_an_exercise_only_adds_lines(file):
    solution = file.read_text(encoding="utf-8")
    # what a repair gives is in the exercise, too
    remaining = iter(solution.replace("#| ", "").splitlines())
    for line in cut(solution).splitlines():
        assert (
            "YOUR CODE" in line or is_task(line) or line.strip() == "pass" or line in remaining
        ), line


@pytest.mark.parametrize("file", SOLUTIONS, ids=lambda f: f.stem)
def test_an_exercise_holds_no_line_of_its_solution(file):
    inside, outside = inside_and_outside(file.read_text(encoding="utf-8"))
    secret = {line.strip() for line in inside if line.strip()} - {line.strip() for line in outside}
    exercise = cut(file.read_text(encoding="utf-8"))
    assert secret and not secret & {line.strip() for line in exercise.splitlines()}
    assert BEGIN not in exercise and END not in exercise and "#:" not in exercise


def committed(name: str) -> bytes | None:
    shown = subprocess.run(
        ["git", "-C", str(paths.ROOT), "show", f"HEAD:exercises/{name}"],
        capture_output=True,
        check=False,
    )
    return shown.stdout if shown.returncode == 0 else None


def test_generating_the_exercises_again_changes_nothing():
    generated = authoring.generate()
    hashes = {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(generated.items())
    }
    wanted = {name: text.encode() for name, text in generated.items()}
    wanted["manifest.json"] = (json.dumps(hashes, indent=1) + "\n").encode()
    assert wanted.keys() == {*(file.name for file in SOLUTIONS), "manifest.json"}
    other, uncommitted = [], []
    for name, content in wanted.items():
        # the checkout's own folder: COURSE_EXERCISES does not matter here
        file = paths.ROOT / "exercises" / name
        if file.is_file() and file.read_bytes() == content:
            continue
        known = committed(name)  # a learner may have solved, broken or deleted the file in the tree
        if known is not None:
            other += [name] if known != content else []
        # without git there is nothing to compare an edited file with
        elif file.is_file() and (paths.ROOT / ".git").exists():
            uncommitted.append(name)
    assert other == [], "not what solutions/ gives: run `make build`"
    assert uncommitted == [], "neither committed nor as generated: run `make build`"


def test_every_solution_has_one_exercise_in_the_catalog():
    from course_lib import catalog

    assert {f.stem for f in SOLUTIONS} == {e.file for e in catalog.exercises().values()}
