"""The pages: self-contained, escaped, with the cause and never the hidden case; and what is
alike."""

from __future__ import annotations

import csv
import html
import html.parser
import json
import os
import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from string import ascii_lowercase

import pytest
from fake_grading import (
    answer,
    fake_check,
    grade,
    read_results,
    write_class,
    write_file,
    write_passing,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import catalog
from course_lib.catalog import texts
from course_lib.classroom import similarity
from course_lib.classroom.checking import FileAnswer
from course_lib.classroom.computed_values import number_values
from course_lib.classroom.lateness import LateRule
from course_lib.classroom.predictions import list_questions, read_surprises
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    NOT_ATTEMPTED,
    PASS,
    CaseResult,
    Finding,
    Oddity,
    Place,
    Verdict,
)

ATTACK = "`<b>`<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{7*7}}"


class Tags(html.parser.HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src")]


def hostile_check(request):
    if request.exercise == "07a":
        return fake_check(request)
    verdict = Verdict(
        request.exercise, FAIL, "padding_in_variance", "all of it, y[0, 0] is -0.125",
        (CaseResult("wide", "fail", 3.0, "M = 5, N = 77713, fp32: wrong"),
            CaseResult("one", "pass", 0.1, "M = 77713, N = 1")),
        hidden="f" * 12, headline=ATTACK,
        first=Finding("M = 5, N = 77713", f"y[0, 0] is 77713 {ATTACK}", "y[0, 0]", 77713.0,
            -77713.0, 41.0, 1, 9),
        place=Place(f"{ATTACK}.py", 3, f"    x = {ATTACK}", 4, 9, ATTACK), question=ATTACK,
        common=f"7 of 9 with N = 77713 {ATTACK}",
    ).as_dict()  # fmt: skip
    found = answer(request, FAIL, "x")
    del verdict["seconds"]
    found.verdict.update(verdict)
    return found


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    home = tmp_path_factory.mktemp("reports")
    folder = write_class(home / "class", 3)
    for name in (ATTACK.replace("/", "_"), "Zoë 李", "Zoe  "):
        write_file(folder / name, "01a", name)
        write_file(folder / name, "07a", name)
    (folder / "empty <b>").mkdir()
    state = folder / "Zoë 李" / ".course"
    state.mkdir()
    first, second = list(list_questions())[:2]
    said = {"made_at": "", "said": ATTACK}
    state.joinpath("progress.json").write_text(
        json.dumps(
            {
                "version": 2,
                "predictions": {
                    first: said | {"surprised": True},
                    second: said | {"surprised": False},
                    ATTACK: said | {"surprised": True},
                },
            }
        )
    )
    grade(folder, home / "out", check=hostile_check)
    return home / "out"


def test_no_page_has_a_tag_or_an_attribute_that_a_learner_wrote_nor_fetches_anything(graded):
    pages = [graded / "class.html", *(graded / "reports").iterdir()]
    assert len(pages) == 1 + 7
    for page in pages:
        text = page.read_text()
        tags = Tags(text)
        assert not tags.tags & {"script", "img", "b", "link", "iframe", "svg"}, page.name
        assert (
            "<code>&lt;b&gt;</code>&lt;script&gt;" in text
            or "learner-" in page.name
            or page.name.startswith(("class", "empty"))
        )
        assert not {name for name in tags.attributes if name.startswith("on")}
        assert all(re.fullmatch(r"(reports|alike)/[a-z0-9-]+\.html", link) for link in tags.links)
        assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
        assert "prefers-color-scheme: dark" in text and "49" not in re.sub(
            r"[0-9a-f]{8}\.html", "", text.split("</style>")[1]
        )


def test_a_learners_page_says_the_cause_and_the_line_and_never_the_hidden_case(graded):
    pages = [
        page.read_text()
        for page in (graded / "reports").iterdir()
        if "learner-" not in page.name and "empty" not in page.name
    ]
    for text in pages:
        assert "77713" not in text and "0.125" not in text and "0, 0" not in text
        assert (
            "1 of 2 hidden cases are right" in text
            and "^^^^^" in text
            and "&lt;script&gt;alert(1)" in text
        )
    assert len(pages) == 3
    everybody = "".join(page.read_text() for page in (graded / "reports").iterdir())
    assert "Zoë 李" in everybody and everybody.count("Nothing could be read") == 1


def test_every_page_can_be_told_by_its_learner_and_no_two_are_one(graded):
    names = sorted(page.name for page in (graded / "reports").iterdir())
    assert len(names) == len(set(names)) == 7 and all(
        name.isascii() and "/" not in name for name in names
    )
    assert (
        sum(name.startswith("zoe-") for name in names) == 2
        and sum("script-alert-1" in name for name in names) == 1
    )


def read_words(page) -> str:
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(text))


def test_a_page_begins_with_what_happened_in_a_sentence_for_each_exercise(tmp_path):
    def check(request):
        if request.data == b"right":
            found = answer(request, PASS, "none")
            found.verdict.update(headline="", cases=[{"status": "pass"}] * 12)
        elif request.data == b"wrong":
            found = answer(request, FAIL, "divisor")
            found.verdict.update(
                headline="The wrong divisor.",
                cases=[{"status": "pass"}, {"status": "fail"}],
                question="By what?",
            )
        elif request.data == b"unwritten":
            found = answer(request, NOT_ATTEMPTED, "not_attempted")
            found.verdict["headline"] = ""
        else:
            found = answer(request, ERROR, "syntax_error")
            place = asdict(Place("f.py", 7, "x = (", 4, 5))
            found.verdict.update(
                headline="This is not valid Python: '(' was never closed.", place=place
            )
        return found

    folder = tmp_path / "class"
    write_file(folder / "ann", "01a", "right")
    write_file(folder / "ann", "04a", "wrong")
    write_file(folder / "bob", "01a", "unwritten")
    write_file(folder / "bob", "04a", "broken")
    os.mkfifo(folder / "bob" / f"{catalog.get('07a').file}.py")
    grade(folder, tmp_path / "out", check=check)
    pages = {
        name: read_words(next((tmp_path / "out" / "reports").glob(f"{name}-*")))
        for name in ("ann", "bob")
    }
    happened, _, details = pages["ann"].partition("Where to look")
    assert (
        happened.index("points")
        < happened.index("What happened")
        < happened.index("All 12 hidden cases are right.")
    )
    assert "The wrong divisor. 1 of 2 hidden cases are right." in happened
    # what was done comes first
    assert "07a" not in happened.partition("There is no file of yours")[0]
    assert (
        "There is no file of yours for 07a (ex07a_layer_norm_forward.py): 0 of 3 points."
        in happened
    )
    assert "By what?" in details and "By what?" not in happened and "wrong divisor" not in details
    happened, _, details = pages["bob"].partition("Where to look")
    assert "The file is still as the course wrote it." in happened
    assert (
        "Line 7: This is not valid Python: '(' was never closed." in happened
        and "7 | x = (" in details
    )
    assert pages["bob"].count("is a pipe") == 1
    whole = read_words(tmp_path / "out" / "class.html")
    assert (
        "0 of 2 learners passed every exercise. What to teach first: The wrong divisor. It stopped"
        " 1 learner." in whole
    )
    taught, _, unrun = whole.partition("Files that did not run")
    assert (
        "By what?" not in taught
        and "how many elements did you add up" in taught.lower()
        and "04a 1" in taught
    )
    assert "The file is no valid Python. 04a 1" in unrun


def test_missing_files_are_one_sentence_below_what_was_done(tmp_path):
    for name in ("01a", "04a"):
        write_file(tmp_path / "class" / "ann", name, "right")
    (tmp_path / "class" / "zoe").mkdir()
    write_file(tmp_path / "class" / "zoe", "06a", "unwritten")
    out = tmp_path / "out"

    def check(request):
        return answer(
            request,
            *((NOT_ATTEMPTED, "not_attempted") if request.data == b"unwritten" else (PASS, "none")),
        )

    grade(tmp_path / "class", out, check=check, only=("01a", "04a", "06a", "07a"))
    ann, zoe = (read_words(next((out / "reports").glob(f"{name}-*"))) for name in ("ann", "zoe"))
    files = {name: f"{catalog.get(name).file}.py" for name in ("01a", "04a", "06a", "07a")}
    assert (
        f"There is no file of yours for 06a ({files['06a']}) and 07a ({files['07a']}): 0 of 5"
        " points." in re.sub(r" ([,)])", r"\1", ann)
    )
    assert (
        ann.index("04a") < ann.index("There is no file")
        and ann.count("There is no file") == zoe.count("There is no file") == 1
    )
    assert (
        "1 learner did not begin; every file is missing or as the course wrote it: zoe."
        in re.sub(r" \.", ".", read_words(out / "class.html"))
    )


def test_the_class_page_counts_causes_and_surprises(graded):
    text = (graded / "class.html").read_text()
    first, second = list(list_questions())[:2]
    assert f"<strong>{first}</strong>" in text and f"<strong>{second}</strong>" not in text
    assert re.search(
        r"<td><strong>Padding in the variance\.</strong><br>What does <code>x - mean</code>"
        r" hold[^\n]+\n"
        r'<td>01a \(6\), 04a \(3\)</td><td class="number">6</td>',
        text,
    )
    assert "From the progress of 1 learner." in text and "empty &lt;b&gt;" in text


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"predictions": []}', b'{"predictions": {"x": 3}}', b"\xff",
        b"[" * 100_000, b'{"predictions": null}', b"1" * (2 << 20)],
)  # fmt: skip
def test_a_progress_file_that_is_none_counts_as_none(data):
    assert not read_surprises(data)


def test_only_questions_of_the_course_count_and_only_true_or_false():
    first, second = list(list_questions())[:2]
    said = {
        "predictions": {
            first: {"surprised": True},
            second: {"surprised": "yes"},
            "made up": {"surprised": True},
        }
    }
    assert read_surprises(json.dumps(said).encode()) == {first: True}


# ---- alike ---------------------------------------------------------------------------------------

EX = catalog.get("07a")
SOLUTION = texts.read_solution(EX)
UNSOLVED = texts.make_unsolved_text(EX)
GIVEN = similarity.take_every_run(UNSOLVED)


def disguise(text: str) -> str:
    """The same code with other names, comments and spaces."""
    names = {"squares": "acc", "deviation": "d_17", "total": "s", "offsets": "o"}
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text.replace(" = ", "=").replace("\n\n", "\n# mine, all mine\n\n\n") + "\n# end\n"


COURSE_VALUES = number_values(UNSOLVED.encode())


def find_alike(*texts: str) -> list[tuple[str, ...]]:
    """The groups among the texts, which are called a, b, c ..."""
    found = similarity.find_alike(
        (name, similarity.list_own_values(text.encode(), COURSE_VALUES))
        for name, text in zip(ascii_lowercase, texts, strict=False)
    )
    return [group.learners for group in found]


def alike(one: str, other: str) -> bool:
    return bool(find_alike(one, other))


def test_a_disguised_copy_is_found_and_another_solution_is_not():
    assert disguise(SOLUTION) != SOLUTION and alike(SOLUTION, disguise(SOLUTION))
    other = (
        SOLUTION.replace("tl.rsqrt", "1.0 / tl.sqrt").replace("mean", "mu")
        + "\n\ndef extra(a, b):\n    return [a[k] * b[k] + 1 for k in range(9) if a[k] > b[k]]\n"
        * 3
    )
    assert not alike(SOLUTION, other)


# SOLUTION with a while loop, split lines, another order and a helper function
REWRITTEN = (
    SOLUTION.replace(
        "    for start in range(0, N, BLOCK):\n        cols = start + tl.arange(0, BLOCK)\n"
        "        total +=",
        "    i = 0\n    while i < N:\n        lane = tl.arange(0, BLOCK)\n"
        "        cols = lane + i\n        i = i + BLOCK\n        total = total +",
    )
    .replace(
        "    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)",
        "    rstd = invert(squares, N, eps)",
    )
    .replace(
        "        squares += deviation * deviation",
        "        d2 = deviation * deviation\n        squares = d2 + squares",
    )
    .replace(
        "@triton.jit\ndef layer",
        "@triton.jit\ndef invert(acc, count, e):\n    spread = tl.sum(acc, axis=0)\n"
        "    return tl.rsqrt(e + spread / count)\n\n\n@triton.jit\ndef layer",
    )
)


def test_other_loops_lines_order_and_helpers_are_no_disguise():
    """In a class of files that look alike: five ways to write the parts of a right solution."""
    others = [
        disguise(SOLUTION).replace("tl.rsqrt(", change).replace("tl.where(cols < N,", mask)
        for change in ("1 / tl.sqrt(", "1.0 / tl.math.sqrt(")
        for mask in ("(cols < N) * (", "tl.where(N > cols,")
    ]
    assert find_alike(SOLUTION, *others, REWRITTEN) == [("a", "f")]
    assert REWRITTEN.count("while") == 1 and "invert(squares" in REWRITTEN


def test_what_the_course_wrote_counts_for_nothing():
    assert not similarity.take_fingerprint(UNSOLVED.encode(), GIVEN)
    assert not alike(UNSOLVED, UNSOLVED) and not alike(
        UNSOLVED + "\nx = 1\n", UNSOLVED + "\ny = 2\n"
    )


def test_what_more_than_a_tenth_of_a_class_share_is_what_the_exercise_forces():
    shared = frozenset(range(30))
    own = [(f"{n:02}", frozenset(range(100 * n, 100 * n + 30))) for n in range(1, 35)]
    for count, named in ((4, True), (5, False)):
        group = [(f"x{n}", shared) for n in range(count)]
        found = similarity.find_alike([*group, *own[: 40 - count]])
        names = tuple(name for name, _ in group)
        assert [one.learners for one in found] == ([names] if named else [])
        assert all(one.shared == 1 for one in found)


@pytest.mark.parametrize(
    ("lacking", "groups"),
    [((), ["ab"]), ((40,), ["ab"]), ((5,), ["abc"]), ((1, 2, 3), [])],
    ids=["alone", "another is far", "a third is near", "five are near one another"],
)
def test_a_pair_is_named_where_no_other_file_is_nearly_as_near(lacking, groups):
    values = [frozenset(range(100))] * 2 + [frozenset(range(n, 100)) for n in lacking]
    values += [frozenset(range(100 * n, 100 * n + 100)) for n in range(1, 9)]
    files = zip(ascii_lowercase, values, strict=False)
    assert ["".join(group.learners) for group in similarity.find_alike(files)] == groups


DEEP = [b"x = " + b"(" * 30_000, b"x = 1" + b"+1" * 30_000, b"x" + b".x" * 30_000, b"-" * 60_000]
# each function is called twice by the next one, with other arguments
MANY_CALLS = "def f0(x):\n    return x\n" + "".join(
    f"def f{n}(x):\n    return f{n - 1}(x + {n}) * f{n - 1}(x - {n})\n" for n in range(1, 60)
)


@pytest.mark.parametrize("data", [*DEEP, b"x = 1\0", b"\xff", b"x = 'a\\d'", b"def f(:"])
def test_no_text_stops_the_comparison(data):
    assert isinstance(number_values(data), frozenset)


def test_functions_that_call_one_another_end_in_a_second():
    begin = time.process_time()
    assert len(number_values(MANY_CALLS.encode())) > 1000
    assert len(number_values(b"def f(x):\n    return f(x + 1)\n")) == 2
    assert time.process_time() - begin < 20


@given(st.binary(max_size=300), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_anything_can_be_fingerprinted(data, times):
    similarity.take_fingerprint(data * times, GIVEN)
    number_values(data * times)


def test_the_class_lists_pairs_without_judging(tmp_path):
    folder = write_class(tmp_path / "class", 2)
    attack = "\n# <script>alert(1)</script>\x1b[2J\t&\n"
    write_file(folder / "=ann", "07a", SOLUTION + attack)
    write_file(folder / "bob", "07a", disguise(SOLUTION))
    write_file(folder / "cy", "07a", UNSOLVED)
    for name in ("ann", "dan"):
        write_file(tmp_path / "of 2025" / name, "07a", SOLUTION)
    variant = (catalog.get("07a").folder / "unusual" / "block_pointers.py").read_text()
    write_file(folder / "eve", "07a", variant)
    out = tmp_path / "out"
    grade(folder, out, also=(tmp_path / "of 2025",))
    assert (out / "similar.csv").read_bytes().decode().splitlines() == [
        "Exercise,Learners,Shared",
        "07a,'=ann; ann (of 2025); bob; dan (of 2025),1.00",
    ]
    assert "=ann, ann (of 2025), bob, dan (of 2025)" in (out / "class.html").read_text()
    page = (out / "alike" / "07a.html").read_text()
    assert (
        not Tags(page).tags & {"script", "b"}
        and "# &lt;script&gt;alert(1)" in page
        and r"\x1b[2J" in page
    )
    assert page.count("tl.rsqrt") >= 2 and not (out / "alike" / "01a.html").exists()
    rows = {
        row["Student"]: row
        for row in csv.DictReader((out / "gradebook.csv").read_text().splitlines())
    }
    assert {name: row["Published"] for name, row in rows.items() if row["Published"]} == {
        "'=ann": "07a is the published solution",
        "bob": "07a is the published solution",
        "eve": "07a is the published variant ex07a_block_pointers",
    }
    before = read_results(out)
    grade(folder, out, also=(tmp_path / "of 2025",))
    grade(folder, out, only=("01a",))
    assert read_results(out) == before, "another exercise's week leaves it as it is"
    words = " ".join(
        re.sub(r"<[^>]+>", " ", before[name].decode()).lower()
        for name in ("class.html", "alike/07a.html")
    )
    assert not re.search(r"plagiari|cheat|copied|suspect|guilty", words)
    grade(folder, out)
    assert (
        (out / "similar.csv")
        .read_text()
        .splitlines()[1]
        .startswith("07a,'=ann; ann (of 2025); bob; dan (of 2025)")
    ), "without --also, what an earlier class has in common stays"
    assert (out / "alike" / "07a.html").read_text().count("--also names an earlier class") == 1
    write_file(folder / "bob", "07a", UNSOLVED)
    write_file(folder / "=ann", "07a", UNSOLVED)
    grade(folder, out, also=(tmp_path / "of 2025",))
    assert not (out / "alike" / "07a.html").exists()


def test_a_run_with_some_of_the_class_keeps_what_is_alike_among_the_others(tmp_path):
    texts = {"ann": SOLUTION, "bob": disguise(SOLUTION), "cy": SOLUTION}
    for name, text in texts.items():
        write_file(tmp_path / "class" / name, "07a", text)
        write_file(tmp_path / "the next week" / name, "01a", "x = 1")
    for name in ("ann", "bob"):
        write_file(tmp_path / "some" / name, "07a", texts[name])
    out = tmp_path / "out"
    for folder in ("class", "some", "some", "the next week"):
        grade(tmp_path / folder, out, only=("01a", "07a"))
        assert (out / "similar.csv").read_text().splitlines() == [
            "Exercise,Learners,Shared",
            "07a,ann; bob; cy,1.00",
        ], folder
    write_file(tmp_path / "class" / "cy", "07a", UNSOLVED)
    grade(tmp_path / "class", out, only=("07a",))
    assert (out / "similar.csv").read_text().splitlines()[1:] == ["07a,ann; bob,1.00"], (
        "who is compared again counts as compared again"
    )


def test_a_published_solution_that_counts_is_named_whatever_comes_later(tmp_path):
    out = tmp_path / "out"
    for text in (write_passing(SOLUTION), "# 1"):
        write_file(tmp_path / "class" / "ann", "07a", text)
        grade(tmp_path / "class", out, only=("07a",))
        (row,) = csv.DictReader((out / "gradebook.csv").read_text().splitlines())
        assert (row["07a status"], row["Published"]) == (PASS, "07a is the published solution")


@pytest.mark.parametrize(
    "change", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"\n", b"\r\n")]
)
def test_how_an_editor_stores_a_text_makes_no_other_file_of_it(change):
    assert similarity.take_fingerprint(
        change(SOLUTION.encode()), GIVEN
    ) == similarity.take_fingerprint(SOLUTION.encode(), GIVEN)


def name_published(out):
    rows = csv.DictReader((out / "gradebook.csv").read_text().splitlines())
    return {row["Student"] for row in rows if row["Published"]}


def test_what_a_class_hands_in_as_one_is_what_the_exercise_forces(tmp_path):
    """In a class of nine, two copies stand out; seven files of one kind do not."""
    folder, out = tmp_path / "class", tmp_path / "out"
    own = SOLUTION.replace("tl.rsqrt(", "1 / tl.sqrt(").replace("deviation * deviation", "square")
    for number in range(9):
        text = SOLUTION if number < 2 else own.replace("square", f"square{' + 0' * number}" * 9)
        write_file(folder / f"learner {number}", "07a", text)
    grade(folder, out, only=("07a",))
    assert name_published(out) == {"learner 0", "learner 1"}
    assert "because the exercise leaves" not in (out / "class.html").read_text()
    for number in range(7):
        write_file(folder / f"learner {number}", "07a", f"# {number}\n{SOLUTION}")
    grade(folder, out, only=("07a",))
    assert name_published(out) == set()
    page = " ".join((out / "class.html").read_text().split())
    assert "because the exercise leaves little choice: 07a (7 learners)." in page


def test_in_a_small_class_a_short_solution_is_no_choice(tmp_path):
    short = next(
        exercise
        for exercise in catalog.exercises().values()
        if exercise.id == "00a"  # a copy with a mask: there is hardly another
    )
    write_file(tmp_path / "class" / "ann", "00a", texts.read_solution(short))
    write_file(tmp_path / "class" / "ann", "07a", SOLUTION)
    out = tmp_path / "out"
    grade(tmp_path / "class", out, only=("00a", "07a"))
    (row,) = csv.DictReader((out / "gradebook.csv").read_text().splitlines())
    assert row["Published"] == "07a is the published solution"
    assert "leaves little choice: 00a (1 learner)." in " ".join(
        (out / "class.html").read_text().split()
    )


def test_what_is_nearly_a_published_text_is_said_with_its_share():
    hashes = similarity.take_fingerprint(SOLUTION.encode(), GIVEN)
    near = frozenset(sorted(hashes)[2:])
    published = [("another text", frozenset(range(50))), ("the published solution", hashes)]
    found = similarity.find_resemblance(hashes, published)
    assert (found.words, found.shared, found.size) == ("the published solution", 1, len(hashes))
    assert re.fullmatch(
        r"9\d % like the published solution", similarity.find_resemblance(near, published).words
    )
    assert (
        similarity.find_resemblance(frozenset(sorted(hashes)[: len(hashes) // 2]), published).words
        == ""
    )
    assert not similarity.find_resemblance(frozenset(), [("nothing", frozenset())]).words


def test_a_file_that_fails_when_it_is_imported_is_told_to_teacher_and_author(tmp_path):
    words = "code outside of what is checked raises RuntimeError when the file is imported"

    def check(request):
        oddities = (Oddity(16, words, for_author=True), Oddity(3, "a way past the dispatcher"))
        plain = Verdict(request.exercise, PASS, "none", "", oddities=oddities).as_dict()
        del plain["seconds"]
        return FileAnswer(plain, 0.1)

    write_file(tmp_path / "class" / "ann", "01a", "x")
    out = tmp_path / "out"
    grade(tmp_path / "class", out, only=("01a",), check=check)
    (row,) = csv.DictReader((out / "gradebook.csv").read_text().splitlines())
    assert row["Odd"] == f"01a line 16: {words}; 01a line 3: a way past the dispatcher"
    page = next((out / "reports").iterdir()).read_text()
    assert f"Line 16: {words}." in page and "dispatcher" not in page


def test_the_pages_are_in_the_chosen_language(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "zh")
    folder, out = tmp_path / "class", tmp_path / "out"
    for name in ("ann", "bob"):
        write_file(folder / name, "07a", write_passing(f"# {name}\n{SOLUTION}"))
    write_file(folder / "bob", "01a", b"FAULT `x`")
    (folder / "cy").mkdir()
    (folder / "cy" / "07a.py").write_text(SOLUTION)
    grade(folder, out, due={"07a": datetime(2025, 1, 1, tzinfo=UTC)}, late=LateRule(percent=10))
    pages = [out / "class.html", out / "alike" / "07a.html", *(out / "reports").iterdir()]
    for page in pages:
        assert '<html lang="zh-CN">' in page.read_text()
        if page.parent.name != "alike":  # that one shows the files
            english = set(re.findall(r"(?:[a-z]+ ){2,}[a-z]+", read_words(page)))
            # a title that was read before, and words of the grader that the journal keeps
            assert english <= {"block by block", "script is it", "a grader fault"}, page


def test_the_class_page_shows_code_as_code(tmp_path):
    write_file(tmp_path / "class" / "ann", "01a", "FAULT")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "marks.csv").write_text(
        "learner,exercise,points,comment\nann,01a,1,see `x`"
    )
    grade(tmp_path / "class", tmp_path / "out", only=("01a",))
    page = (tmp_path / "out" / "class.html").read_text()
    assert "see <code>x</code>" in page and "`" not in page
