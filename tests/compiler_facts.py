"""The compiler's answers about kernels, kept by the hash of everything that they depend on.

To compile the kernels of the launch tables and every construct of the language takes minutes, and
the answers change only if a kernel, its launch or Triton changes. ``compiler_facts.json`` keeps
them. A question whose hash the file has is not asked again; any other question is asked in the run.
``make sweep`` asks every question and compares the answers with the file. A run with
``--renew-facts`` writes the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from selection import chooses_tests

from course_lib.base import paths
from course_lib.compiler import helper

TRITON = metadata.version("triton")
STORED = Path(__file__).with_suffix(".json")
# What the process that compiles is made of: a change there may change any answer.
COMPILER = [
    paths.PACKAGE / "compiler" / f"{name}.py"
    for name in ("assembly", "compilation", "compile_job", "machine", "refusals", "units")
]
# Each test of the compiler runs with the file's facts in `make test`, and without them in `make
# sweep`.
MODES = ["kept", pytest.param("anew", marks=pytest.mark.sweep)]
KEPT = ("registers", "spill_bytes", "shared_bytes")  # of a report of the compiler
NOT_KEPT = {
    "loads": None,
    "stores": None,
    "ptx": "",
    "sass": None,
    "ttir": "",
    "ttgir": "",
    "lines": {},
    "seconds": 0.0,
}


def make_key(question: Any, sources: Sequence[Path], version: str = TRITON) -> str:
    """Return the hash of a question, of the files that ask it, and of the programs that answer it.

    Args:
        question: plain data with all texts that are compiled.
    """
    texts = [file.read_text(encoding="utf-8") for file in sources]
    whole = [question, texts, version, platform.machine(), sys.version_info[:2]]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:20]


@dataclasses.dataclass
class Facts:
    """The facts of one run: ``stored`` are those of the file, ``used`` and ``computed`` those of
    this run, by the test's file."""

    stored: dict[str, dict[str, Any]]
    used: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    computed: set[str] = dataclasses.field(default_factory=set)  # keys that the file does not have

    def recall(
        self, user: str, keys: Sequence[str], ask: Callable[[list[int]], list[Any]], *, anew: bool
    ) -> list[Any]:
        """Return the answer of each key.

        Args:
            user: the file of the test that asks.
            ask: returns the answers to the questions with these numbers.
            anew: ask every question, also those that have a stored answer.

        Raises: AssertionError if a stored answer differs from the compiler's.
        """
        stored = self.stored.get(user, {})
        open_questions = [number for number, key in enumerate(keys) if anew or key not in stored]
        answers = (
            {
                keys[number]: answer
                for number, answer in zip(open_questions, ask(open_questions), strict=True)
            }
            if open_questions
            else {}
        )
        for key, answer in answers.items():
            assert stored.get(key, answer) == answer, (
                f"{STORED.name} has {stored[key]} under {key}, and the compiler says {answer}. Its"
                f" hash does not cover what changed. Delete {STORED.name} and run"
                f" `{describe_renewal([user])}`."
            )
        self.computed |= answers.keys() - stored.keys()
        self.used.setdefault(user, {}).update(
            {key: answers.get(key, stored.get(key)) for key in keys}
        )
        return [self.used[user][key] for key in keys]


def describe_renewal(users: Sequence[str]) -> str:
    return f"python -m pytest --renew-facts {' '.join(users)}"


class FactKeeper:
    """A pytest plugin that gives tests the facts, says how many were computed, and writes the file
    if that is asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.facts = Facts(
            json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the facts of a worker of pytest-xdist that has ended."""
        used, computed = getattr(node, "workeroutput", {}).get("compiler_facts", ({}, []))
        for user, facts in used.items():
            self.facts.used.setdefault(user, {}).update(facts)
        self.facts.computed |= set(computed)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if (output := getattr(self.config, "workeroutput", None)) is not None:
            output["compiler_facts"] = (self.facts.used, sorted(self.facts.computed))
        elif self.config.getoption("--renew-facts") and not exitstatus:
            STORED.write_text(write_facts(self.facts.stored | self.facts.used), encoding="utf-8")
            self.facts.computed.clear()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.facts.computed:
            users = [
                user
                for user, facts in self.facts.used.items()
                if facts.keys() & self.facts.computed
            ]
            terminalreporter.section("facts of the compiler")
            terminalreporter.write_line(
                f"{STORED.name} has no answer to {len(self.facts.computed)} questions, so the"
                " compiler was asked."
            )
            terminalreporter.write_line(f"To keep the answers: {describe_renewal(sorted(users))}")

    @pytest.fixture(params=MODES)
    def recall_compilations(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Answer the course's questions to the compiler from the file.

        Kept are that a kernel compiles, and of a report registers, spills and shared memory.
        Refusals, access widths and texts are not.
        """
        send, user = helper.send, request.node.nodeid.partition("::")[0]

        def recall(kernels: list[dict[str, Any]], *rest: Any) -> list[dict[str, Any]]:
            assert not any(kernel["disassemble"] for kernel in kernels), (
                "access widths are not kept: ask with disassemble=False"
            )
            key = make_key(list(map(drop_line_numbers, kernels)), COMPILER)
            try:
                facts = self.facts.recall(
                    user, [key], lambda _: [ask(kernels, *rest)], anew=request.param == "anew"
                )
            except RefusedKernel as refused:
                return refused.answers
            return list(map(make_answer, facts[0]))

        def ask(kernels: list[dict[str, Any]], *rest: Any) -> list[list[int] | None]:
            answers = send(kernels, *rest)
            if any(answer["refusal"] for answer in answers):
                raise RefusedKernel(answers)
            return [
                answer["report"] and [answer["report"][name] for name in KEPT] for answer in answers
            ]

        monkeypatch.setattr(helper, "send", recall)


class RefusedKernel(Exception):
    """The compiler refuses a kernel, for which no fact is kept. ``answers``: what it answers."""

    def __init__(self, answers: list[dict[str, Any]]):
        super().__init__("the compiler refuses a kernel")
        self.answers = answers


def make_answer(numbers: list[int] | None) -> dict[str, Any]:
    """Return the answer about a kernel whose fact is ``numbers``: those of a report, or None for
    one that compiles."""
    return {"refusal": None, "report": numbers and dict(zip(KEPT, numbers, strict=True)) | NOT_KEPT}


def write_facts(facts: dict[str, dict[str, Any]]) -> str:
    """Return the text of the file, with a line for each fact."""
    blocks = []
    for user, answers in sorted(facts.items()):
        lines = [
            f"{json.dumps(key)}: {json.dumps(answer)}" for key, answer in sorted(answers.items())
        ]
        blocks.append(f"{json.dumps(user)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def drop_line_numbers(kernel: dict[str, Any]) -> dict[str, Any]:
    """Return a job for the compiler without the lines at which its texts begin: no fact depends on
    them."""
    return kernel | {
        "units": [
            {name: value for name, value in unit.items() if name != "first_line"}
            for unit in kernel["units"]
        ]
    }


def check_options(config: pytest.Config) -> None:
    """Raise a UsageError if ``--renew-facts`` is given for a part of a file: the facts of the other
    part would be lost."""
    option = config.option
    if option.renew_facts and (
        chooses_tests(config) or any("::" in str(argument) for argument in config.args)
    ):
        raise pytest.UsageError("--renew-facts: name whole files, and choose no tests in them")
