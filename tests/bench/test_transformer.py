"""The small transformer: reproducible from a seed, learns, and learns the same with the course's
norms as with PyTorch's."""

from __future__ import annotations

import math
import tomllib

import pytest
import torch

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.bench import transformer
from course_lib.bench.transformer import (
    ModelSize,
    Text,
    batches,
    build,
    encode,
    fables,
    learn,
    loss_on,
    share_of_words,
    train,
    write,
)
from course_lib.norms import modules

DEVICE = course_lib.DEVICE
SMALL = ModelSize(layers=1, heads=2, channels=8, context=6, batch=2)
PROSE = encode("the mean of a row, the row of a mean, and the root of both. " * 40)


def losses(norm, steps, size=SMALL, **options):
    return list(train(build(PROSE, norm, size, device=DEVICE), PROSE, steps, size, **options))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(modules.LayerNorm, torch.nn.LayerNorm), (modules.RMSNorm, torch.nn.RMSNorm)],
)
def test_both_norms_train_alike(ours, theirs):
    """To 1e-5 nats over ten steps: a rounding of the loss is 2e-7, and training amplifies."""
    got, want = losses(ours, 10), losses(theirs, 10)
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-5
    assert want[0] != want[-1]


def test_a_norm_without_dw_is_seen_by_that_comparison():
    class NeverDw(torch.nn.LayerNorm):
        def forward(self, x):
            return torch.nn.functional.layer_norm(
                x, self.normalized_shape, self.weight.detach(), self.bias, self.eps
            )

    got, want = losses(NeverDw, 10), losses(torch.nn.LayerNorm, 10)
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) > 1e-3


def test_it_learns_more_than_how_often_characters_occur():
    size = ModelSize(channels=32, context=16, batch=8)
    model = build(PROSE, torch.nn.LayerNorm, size, device=DEVICE)
    before = loss_on(model, PROSE, size)
    for _ in train(model, PROSE, 60, size):
        pass
    assert before > PROSE.entropy() > loss_on(model, PROSE, size) + 0.5


def test_a_seed_fixes_weights_and_batches_and_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, two, other = (build(PROSE, torch.nn.LayerNorm, SMALL, seed=seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.head.weight, other.head.weight)
    assert (
        losses(torch.nn.LayerNorm, 3)
        == losses(torch.nn.LayerNorm, 3)
        != losses(torch.nn.LayerNorm, 3, seed=1)
    )
    assert torch.equal(torch.get_rng_state(), state)


def test_norms_draw_nothing_so_that_every_norm_gets_the_same_weights():
    layer, rms = build(PROSE, modules.LayerNorm, SMALL), build(PROSE, modules.RMSNorm, SMALL)
    assert torch.equal(layer.head.weight, rms.head.weight)
    assert sum(isinstance(module, modules.RMSNorm) for module in rms.modules()) == SMALL.norms


def test_no_character_sees_a_later_one():
    model = build(PROSE, torch.nn.LayerNorm, SMALL)
    codes = PROSE.codes[None, :6].clone()
    before = model(codes)
    codes[0, 4] = (codes[0, 4] + 1) % len(PROSE.characters)
    after = model(codes)
    assert torch.equal(before[0, :4], after[0, :4]) and not torch.allclose(
        before[0, 4], after[0, 4]
    )


def test_batches_are_the_text_and_the_text_one_further_on():
    codes, wanted = next(batches(PROSE, SMALL, seed=0))
    assert codes.shape == wanted.shape == (2, 6) and torch.equal(codes[:, 1:], wanted[:, :-1])
    decoded = "".join(PROSE.characters[code] for code in codes[0])
    assert decoded in "the mean of a row, the row of a mean, and the root of both. " * 2


def test_entropy():
    assert Text(torch.tensor([0, 1, 0, 1]), "ab").entropy() == pytest.approx(math.log(2))
    with pytest.raises(CourseError, match="two different characters"):
        encode("aaaa")


def test_the_text_is_plain_and_its_licence_lies_beside_it():
    """Its letters and its length are what lesson 14 says; the same text gives the same losses."""
    text = fables()
    assert (
        20_000 < len(text) < 60_000
        and text.isascii()
        and text.endswith("\n")
        and text.count("\n") == 168
    )
    assert len(set(text)) == 43 and not any(
        line != line.strip() or "  " in line for line in text.splitlines()
    )
    licence = (paths.ROOT / "course_lib" / "bench" / "text" / "LICENCE.txt").read_text(
        encoding="utf-8"
    )
    assert (
        "fables.txt" in licence
        and "MIT" in licence
        and "MIT" in (paths.ROOT / "LICENSE").read_text(encoding="utf-8")
    )


def test_the_text_is_shipped_with_the_package():
    with (paths.ROOT / "pyproject.toml").open("rb") as opened:
        shipped = tomllib.load(opened)["tool"]["setuptools"]["package-data"]
    assert "text/*.txt" in shipped["course_lib.bench"]


def test_a_missing_text_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(transformer, "__file__", str(tmp_path / "transformer.py"))
    with pytest.raises(CourseError, match="git checkout"):
        fables.__wrapped__()


def test_what_is_held_out_is_the_end_in_whole_lines_over_the_same_characters():
    corpus = transformer.split("abc\n" * 9 + "cba\n")
    assert corpus.training.characters == corpus.held_out.characters == "\nabc"
    decoded = [
        "".join(part.characters[code] for code in part.codes)
        for part in (corpus.training, corpus.held_out)
    ]
    assert decoded == ["abc\n" * 9, "cba\n"]
    for wrong in ("abc", "one line\n"):
        with pytest.raises(CourseError, match="cannot be cut"):
            transformer.split(wrong)


def test_learning_is_training_with_the_loss_on_what_is_held_out():
    corpus = transformer.split("the mean of a row, the row of a mean, and the root of both.\n" * 40)
    model, same = (
        build(corpus.training, torch.nn.LayerNorm, SMALL, device=DEVICE) for _ in range(2)
    )
    curve = list(learn(model, corpus, 4, SMALL))
    for _ in train(same, corpus.training, 4, SMALL):
        pass
    assert len(curve) == 4 and all(
        torch.equal(a, b) for a, b in zip(model.parameters(), same.parameters(), strict=True)
    )
    assert curve[-1] == loss_on(model, corpus.held_out, SMALL, windows=8) != curve[0]


def test_a_sample_is_of_the_texts_characters_and_the_same_each_time():
    model = build(PROSE, torch.nn.LayerNorm, SMALL, device=DEVICE)
    sample = write(model, PROSE, 50, start="the ")
    assert len(sample) == 50 and set(sample) <= set(PROSE.characters)
    assert (
        sample
        == write(model, PROSE, 50, start="the ")
        != write(model, PROSE, 50, start="the ", seed=1)
    )
    for _ in train(model, PROSE, 60, SMALL):
        pass
    assert write(model, PROSE, 20, start="the r", warmth=1e-3) != sample[:20]
    with pytest.raises(CourseError, match="begins with"):
        write(model, PROSE, 5, start="THE")


def test_a_shown_text_breaks_between_words(capsys):
    transformer.show("the mean of a row\nand its root", width=9)
    assert capsys.readouterr().out == "the mean\nof a row\nand its\nroot\n"


def test_how_many_words_are_words():
    # sat is none; the last is cut off
    assert share_of_words("the cat sat on the ma", "the cat\non it") == 4 / 5
    assert share_of_words("", "the") == share_of_words("xyz", "the") == 0


def test_a_norm_sees_as_many_rows_as_the_size_says():
    seen = []

    class Watching(torch.nn.LayerNorm):
        def forward(self, x):
            seen.append(tuple(x.shape))
            return super().forward(x)

    losses(Watching, 1)
    assert len(seen) == SMALL.norms and {(B * T, C) for B, T, C in seen} == {
        (SMALL.rows, SMALL.channels)
    }


def test_the_estimate_is_of_all_steps_of_all_norms(monkeypatch):
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(transformer.time, "perf_counter", lambda: float(next(clock)))
    corpus = transformer.split(transformer.fables())
    one = transformer.estimate(corpus, [torch.nn.LayerNorm], 30)
    assert one == "about 30 seconds on this machine", "three steps in three seconds"
    both = transformer.estimate(corpus, [torch.nn.LayerNorm, torch.nn.RMSNorm], 300)
    assert both == "about 10 minutes on this machine"
