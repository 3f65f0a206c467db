"""Lesson 18's loss: the learner's 18a and 18c in the place of PyTorch's operations."""

from __future__ import annotations

import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.authoring import exercises
from course_lib.bench import transformer
from course_lib.catalog import texts
from course_lib.lessons.lesson18 import own_loss
from course_lib.lessons.lesson18.figures import count_loss_bytes
from course_lib.lessons.lesson18.own_loss import CHUNK, ROLES, OwnLoss, gather_loss

DEVICE = course_lib.DEVICE
ALL = {key: texts.read_solution(catalog.get(key)) for key in ROLES}
TEXT = transformer.encode("the loss of a row, the row of a loss, and the log of all sums. " * 40)
# 72 rows: one chunk that is full, and a part of one
SIZE = transformer.ModelSize(layers=1, heads=2, channels=8, context=24, batch=3)


def compute_all(compute_loss) -> list:
    """The loss, then the gradient of each parameter."""
    model = transformer.build(TEXT, torch.nn.LayerNorm, SIZE, device=DEVICE)
    codes, targets = next(transformer.batches(TEXT, SIZE, 0, DEVICE))
    loss = compute_loss(model, codes, targets)
    (3 * loss).backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


@pytest.mark.parametrize("own", [[], ["18a"], ["18c"], list(ROLES)], ids=" ".join)
def test_loss_and_gradients_are_pytorchs_whoever_made_the_parts(own):
    loss = OwnLoss({key: ALL[key] for key in own}, dict.fromkeys(ROLES, "not yet"))
    for mine, theirs in zip(
        compute_all(loss), compute_all(transformer.compute_cross_entropy), strict=True
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-4)
    assert {part.exercise: part.own for part in loss.parts} == {key: key in own for key in ROLES}
    assert loss.launches == {"18c": 1, "18a": 2} and SIZE.rows == CHUNK + 8


def test_a_wrong_kernel_spoils_the_training():
    """What the page shows comes from the learner's code: nothing stands in for it in silence."""
    wrong = ALL["18a"].replace("softmax - 1.0, softmax", "softmax, softmax")
    assert wrong != ALL["18a"]
    right, spoilt = (OwnLoss(ALL | {"18a": text}, {}) for text in (ALL["18a"], wrong))
    assert not torch.allclose(compute_all(right)[1], compute_all(spoilt)[1], atol=1e-3)


def test_no_tensor_has_the_logits_of_more_rows_than_a_chunk(monkeypatch):
    sizes = []
    compute_gradient = OwnLoss.compute_gradient

    def note(self, dloss, x, target, lse):
        sizes.append(tuple(x.shape))
        return compute_gradient(self, dloss, x, target, lse)

    monkeypatch.setattr(own_loss.OwnLoss, "compute_gradient", note)
    compute_all(OwnLoss(ALL, {}))
    assert sizes == [(CHUNK, len(TEXT.characters)), (8, len(TEXT.characters))]


def test_a_file_that_does_not_pass_is_pytorchs_and_says_why(own_exercises):
    exercises.write(own_exercises)
    loss = gather_loss()
    assert [part.own for part in loss.parts] == [False, False]
    assert "PyTorch’s: your 18c is still as the course wrote it." in repr(loss)
    raising = OwnLoss({"18c": "raise RuntimeError('no')\n"}, {"18a": "not yet"})
    assert "raises here: RuntimeError: no" in repr(raising)
    compute_all(raising)


def test_the_bytes_of_the_page():
    M, N = 8192, 128_256
    assert count_loss_bytes(M, N, M) == 2 * 2 * M * N + 12 * M
    assert count_loss_bytes(M, N, CHUNK) * 100 < count_loss_bytes(M, N, M)
