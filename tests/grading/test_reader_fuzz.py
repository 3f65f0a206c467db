"""Whatever a file holds, reading it ends in time, with kernels or with a sentence: random syntax
trees, bytes and encodings.

The texts are put together out of pieces of Python's grammar, nested, chained and repeated up to the
largest file that is read. Time is the processor's, of the job that reads and of this process, so
that a busy machine changes nothing.
"""

from __future__ import annotations

import codecs
import dataclasses
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import catalog
from course_lib.grading.check import check
from course_lib.grading.submission import reader, source
from course_lib.grading.submission.source import Kernels, Unreadable
from course_lib.sandbox import jobs, servers
from course_lib.sandbox.jobs import ResourceLimits

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a GPU reads as any other machine does"
)

MOST = 1_000_000  # bytes of a file that is read
OWN_SECONDS = 0.75  # of this process, for a file of that size
GRACE_SECONDS = 0.75  # of the job, which is ended by the wall clock and may have a start behind it
LONGEST = 2000
EXERCISES = [catalog.get(name) for name in ("00a", "01a", "04b", "14a")]  # a kind each
LIMITS = dataclasses.replace(ResourceLimits(), case=0.5, total=0.5)
fuzzed = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# what stands before and after an expression that is inside another one
AROUND = [
    ("f(", ")"), ("f(a=", ")"), ("f(*", ")"), ("[", "]"), ("(", ",)"), ("(", ")"), ("{1: ", "}"),
    ("{", "}"), ("a[", "]"), ("a[:", "]"),
    ("", ".b"), ("", "()"), ("", "[0]"), ("lambda: ", ""), ("lambda a=", ": 1"), ("-", ""),
    ("not ", ""), ("~", ""), ("", " and a"),
    ("", " or a"), ("", " < a"), ("", " + 1"), ("", " ** 2"), ("2 ** ", ""), ("a if ", " else b"),
    ("a if b else ", ""),
    ("[i for i in ", "]"), ("[", " for i in a]"), ("{i: 1 for i in ", "}"), ("(a := ", ")"),
    ("(yield ", ")"), ("(await ", ")"),
    ("f'{", "}'"), ("'' ", ""), ("1, ", ""), ("*", ""), ("a[lambda: ", "]"), ("", " if a"),
    ("", ","), ("", "\\\n"),
]  # fmt: skip
PLACES = [
    "{}", "x = {}", "x = y = {}", "x: {} = 1", "X: tl.constexpr = {}", "X = tl.constexpr({})",
    "def copy_kernel(a={}): pass",
    "@{}\ndef copy_kernel(): pass", "@triton.jit\n@{}\ndef copy_kernel(): pass",
    "@triton.jit\ndef copy_kernel(a: {}): pass",
    "@triton.jit\ndef copy_kernel(a={}): return a", "@triton.jit\ndef copy_kernel(a) -> {}: pass",
    "@triton.jit\ndef copy_kernel(x):\n    return {}",
    "@triton.jit\ndef copy_kernel(x):\n    tl.store(x, {})",
    "@triton.jit\ndef copy_kernel(x):\n    {} = 1", "def layer_norm(x, w, b, eps):\n    return {}",
    "def merge(*a):\n    y = {}\n    return y",
    "def forward(ctx):\n    ctx.kept = {}\ndef backward(ctx): pass", "match {}:\n    case 1: pass",
    "match a:\n    case {}: pass", "class A({}): pass", "for i in {}: pass", "while {}: pass",
    "assert {}, 1", "del {}", "with {} as a: pass",
    "try: pass\nexcept {}: pass", "raise {} from a", "global {}", "import {}", "from {} import a",
    "async def f(): {}",
]  # fmt: skip
# what a file may have thousands of
REPEATED = [
    "\n", "#\n", "x = 1\n", "x = 1; ", "pass\n", "import a\n", "import triton\n",
    "@triton.jit\ndef k(): pass\n", "def f(): pass\n",
    "@a\n", "if a: pass\n", "elif a: pass\n", "X = tl.constexpr(1)\n", "case 1: pass\n", "'a' ",
    "a, ", "a = ", "a.", "(", ")", "[", "{", "'",
    "'''", "\\\n", "\t", " ", "\f", "\r", "\r\n", "\u2028", "é", "\N{PILE OF POO}", "_", "0", "9",
    "1_", "0x", "1e", "..", "->", "lambda ", "-",
    "**", "\\N{DIGIT ONE}", "{{", "f'{", "!r", ":=", "$", "\x00", "\x1b[2J", "\ufeff", "\u202e",
    "\ud800", "if a:\n ", "with a as b, ", "for i in a ",
]  # fmt: skip
NAMES = st.sampled_from(
    [
        "a",
        "tl",
        "x_ptr",
        "tl.load",
        "copy_kernel",
        "layer_norm",
        "merge",
        "ctx.a",
        "__import__",
        "é",
        "print",
    ]
)
COUNTS = st.sampled_from([0, 1, 2, 9, 50, 101, 999, 10_000, 200_000])


@st.composite
def leaves(draw) -> str:
    many = draw(COUNTS)
    kind = draw(
        st.sampled_from(["name", "text", "bytes", "number", "hexadecimal", "float", "identifier"])
    )
    return {
        "name": draw(NAMES), "text": repr("x" * many), "bytes": f"b'{'x' * many}'",
        "number": "9" * (many + 1),
        "hexadecimal": "0x" + "f" * (many + 1), "float": "1e" + "9" * (many + 1),
        "identifier": "n" * (many + 1),
    }[kind]  # fmt: skip


@st.composite
def expressions(draw) -> str:
    text = draw(leaves())
    for _ in range(draw(st.integers(1, 3))):
        before, after = draw(st.sampled_from(AROUND))
        many = min(
            draw(COUNTS),
            (MOST - 2000 - len(text.encode("utf-8", "replace"))) // (len(before + after) or 1),
        )
        text = before * many + text + after * many
    return text


@st.composite
def sources(draw) -> str:
    parts = [
        draw(
            st.sampled_from(
                [
                    "",
                    "import triton\nimport triton.language as tl\n",
                    "import torch\n",
                    "import numpy as np\n",
                ]
            )
        )
    ]
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            parts.append(draw(st.sampled_from(PLACES)).replace("{}", draw(expressions())) + "\n")
        else:
            parts.append(draw(st.sampled_from(REPEATED)) * draw(COUNTS))
    return "".join(parts)


def cut(data: bytes) -> bytes:
    return data[:MOST]


ENCODINGS = st.sampled_from(
    [
        "utf-8",
        "utf-8-sig",
        "utf-16",
        "utf-16-le",
        "utf-32",
        "latin-1",
        "cp1252",
        "shift_jis",
        "utf-7",
    ]
)
COMMENTS = st.sampled_from(
    [
        "",
        "# coding: latin-1\n",
        "# -*- coding: utf-16 -*-\n",
        "#!/bin/sh\n# vim: set fileencoding=nonsense :\n",
        "\ufeff\ufeff",
        "\f",
    ]
)


@st.composite
def files(draw) -> bytes:
    """Bytes of a file: a text in some encoding, or no text at all, or one with a few bytes of its
    own."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.binary(max_size=300)) * draw(st.sampled_from([1, 1, 7, 3000]))
    data = bytearray((draw(COMMENTS) + draw(sources())).encode(draw(ENCODINGS), "replace"))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(data)))
        data[place:place] = draw(
            st.sampled_from(
                [
                    b"\x00",
                    b"\xff",
                    b"\r",
                    b"\x0c",
                    b"\xed\xa0\x80",
                    b"\x1a",
                    b"\xc0\x80",
                    codecs.BOM_UTF8,
                ]
            )
        )
    return bytes(data)


class Clock:
    """Seconds of the processor that a reading took: in the job, and in this process."""

    def __init__(self):
        servers.stop_all()  # an earlier test may have left several
        jobs.warm(reader.KIND)
        self.server = self.find_server()

    def find_server(self) -> psutil.Process:
        (server,) = [server for server in servers._idle if server.key[0] == reader.KIND]
        return psutil.Process(server.pid)

    def __enter__(self) -> Clock:
        self.before, self.own = self.of_jobs(), time.process_time()
        return self

    def of_jobs(self) -> float:
        times = self.server.cpu_times()
        return times.children_user + times.children_system

    def __exit__(self, *raised: object) -> None:
        assert time.process_time() - self.own < OWN_SECONDS
        assert self.find_server().pid == self.server.pid, "the server did not survive it"
        assert self.of_jobs() - self.before < reader.SECONDS + GRACE_SECONDS


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


def is_a_sentence(said: str) -> bool:
    return 0 < len(said) < LONGEST and "Traceback" not in said


@settings(fuzzed, max_examples=140)
@given(text=sources(), exercise=st.sampled_from(EXERCISES))
@example(text="x = " + "f(" * 99 + ")" * 99, exercise=EXERCISES[0])
@example(text="x = " + "9" * 900_000, exercise=EXERCISES[0])
def test_a_text_is_read_in_time(clock, text, exercise):
    text = text[:MOST]
    with clock:
        try:
            found = reader.read(exercise, text, "mine.py")
        except Unreadable as unreadable:
            assert is_a_sentence(str(unreadable)) and is_a_sentence(unreadable.what)
            assert unreadable.cause != "too_complex" or len(text) > 20_000
            return
    assert isinstance(found, Kernels) or found is None


@settings(fuzzed, max_examples=120)
@given(data=files(), exercise=st.sampled_from(EXERCISES))
@example(data=b"", exercise=EXERCISES[0])
@example(data="x = '\ud800'".encode("utf-8", "surrogatepass"), exercise=EXERCISES[1])
def test_a_file_is_checked_in_time(clock, data, exercise, tmp_path_factory):
    file = Path(tmp_path_factory.getbasetemp()) / "mine.py"
    file.write_bytes(cut(data))
    with clock:
        verdict = check(exercise, file, limits=LIMITS)
    assert verdict.status in ("error", "fail") and verdict.cause != "grader_fault", verdict.message
    assert is_a_sentence(verdict.message)
    assert verdict.place is None or len(verdict.place.source) <= 500


@settings(fuzzed, max_examples=60)
@given(text=sources())
@example(text="x = 0x" + "f" * 5000)
def test_the_tree_is_no_deeper_than_what_walks_it_can_go(text):
    """In this process, without the limits of a job: a text that parses is a tree that every part of
    the course can walk."""
    try:
        tree = source.parse(text[:20_000], "mine.py")
    except Unreadable as unreadable:
        assert is_a_sentence(str(unreadable))
    else:
        source.ast.dump(tree)
        source.ast.unparse(tree)
