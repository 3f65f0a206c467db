"""The hostile submissions on a GPU: their Python runs as the file of a kernel is imported, in the
process that opens the GPU.

A kernel's process may start programs there, because Triton starts a compiler: what it starts is as
confined as it is itself, and ends with it.
"""

from __future__ import annotations

import dataclasses
import os
import time

import pytest
from test_attacks import ATTACKS, Attack, after, handed_in, left_by_others, sockets, world  # noqa: F401 - fixtures

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.grading.check import check
from course_lib.grading.kind import find_mode
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.sandbox import isolation, jobs

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "gpu", reason="needs a GPU; test_attacks has them for the CPU"
)

COPY = catalog.get("00a")
SOLUTION = (paths.SOLUTIONS / f"{COPY.file}.py").read_text(encoding="utf-8")
# what several of them at once may take of the machine is theirs to test, not to have
LIMITS = dataclasses.replace(find_mode("gpu").limits, case=20.0, total=30.0, resident_bytes=6 << 30)
CALL = """

try:
    layer_norm(torch.zeros(2, 4), torch.ones(4), torch.zeros(4), 1e-5)
except Exception:
    pass

"""
# What is open beside a GPU, and why; that nothing of it stays or gets out is asserted all the same.
OPEN_BESIDE_A_GPU = {
    # Triton starts a C compiler: programs may be started, and end with the check
    "becomes_another_program", "daemon", "daemon_by_program", "fork_bomb", "outlives_its_keeper",
    # CUDA looks itself up in /proc, which is the namespace's own, and so does whoever asks
    "reads_through_its_own_proc",
    "scans_descriptors",  # the driver's own
    # CUDA reserves more addresses than any machine has memory: no limit is set
    "raises_its_limits", "takes_shared_address_space",
}  # fmt: skip
HOST = [attack for attack in ATTACKS if attack.exercise.id == "01a" and attack.layer == "isolation"]


@pytest.fixture(scope="module")
def best_tier() -> str:
    verdict = check(COPY, paths.SOLUTIONS / f"{COPY.file}.py")
    assert verdict.passed, verdict.message
    return verdict.tier


def test_a_kernels_check_is_as_well_shut_in_as_a_functions(best_tier):
    function = catalog.get("01a")
    assert check(function, paths.SOLUTIONS / f"{function.file}.py").tier == best_tier


@pytest.mark.parametrize("tier", [isolation.NAMESPACES, isolation.LANDLOCK])
@pytest.mark.parametrize("attack", HOST, ids=lambda attack: attack.name)
def test_what_is_run_beside_a_gpu_is_confined(
    attack: Attack,
    tier,
    best_tier,
    world,  # noqa: F811 - the fixture
    tmp_path,
    monkeypatch,
):
    if isolation.TIERS.index(tier) < isolation.TIERS.index(best_tier):
        pytest.skip(f"this machine's best isolation is: {best_tier}")
    if attack.name == "fork_bomb" and tier == isolation.LANDLOCK and os.geteuid() == 0:
        pytest.skip(
            "known to be open (docs/security.md): nothing but the server's look limits how many"
            " processes root starts"
        )
    monkeypatch.setattr(jobs, "BEST_TIER", tier)
    text = handed_in(attack, world, tmp_path).read_text(encoding="utf-8") + CALL + SOLUTION
    file = tmp_path / f"{COPY.file}.py"
    file.write_text(text, encoding="utf-8")
    with monkeypatch.context() as past:
        past.setattr(
            reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points)
        )
        verdict = check(COPY, file, limits=LIMITS)
    assert verdict.tier == tier or verdict.status == "grader fault", verdict.message
    if attack.name not in OPEN_BESIDE_A_GPU:
        assert "BREACH" not in verdict.printed, verdict.printed
    assert _wait_for_nothing_left(world, tmp_path) == []
    assert len(verdict.message) < 4000 and len(verdict.printed) <= 4000


def _wait_for_nothing_left(world, tmp_path) -> list[str]:  # noqa: F811
    """What is left behind, once the interpreter has ended: a GPU's verdict on wrong values does not
    wait for it."""
    end = time.monotonic() + LIMITS.total
    while (left := after(world, tmp_path)) and time.monotonic() < end:
        time.sleep(0.1)
    return left
