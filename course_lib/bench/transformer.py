"""A small character-level transformer with an exchangeable norm and an exchangeable loss, its
training text, a training loop, and text samples from the model.

Lesson 14 trains it from one seed with PyTorch's norm, with the learner's and with broken ones, and
compares the losses on a part of the text that is held out. Lesson 18 trains it with the learner's
norm and loss. It is a plain decoder with norms before
attention, before the multilayer perceptron and before the output. The text is ``text/fables.txt``;
``text/LICENCE.txt`` names its source and licence.

Source: Vaswani et al. 2017, "Attention Is All You Need"; norms placed as in Xiong et al. 2020, "On
Layer Normalization in the Transformer Architecture".
"""

from __future__ import annotations

import contextlib
import math
import re
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _

# takes the number of channels, like torch.nn.LayerNorm and torch.nn.RMSNorm
Norm = Callable[[int], nn.Module]


@dataclass(frozen=True)
class ModelSize:
    """The size of a model and its batches. A training step has 2 * layers + 1 norms of batch *
    context rows of ``channels`` columns."""

    layers: int = 1
    heads: int = 4
    channels: int = 64
    context: int = 32
    batch: int = 16

    @property
    def norms(self) -> int:
        return 2 * self.layers + 1

    @property
    def rows(self) -> int:
        return self.batch * self.context


TOY = ModelSize()
_SMALL = 1 << 16  # a model whose activations have at most this many elements counts as small


class Block(nn.Module):
    """Attention, then a multilayer perceptron, each with a norm before it and a residual path
    around it."""

    def __init__(self, size: ModelSize, norm: Norm):
        super().__init__()
        C = size.channels
        self.heads = size.heads
        self.norm1, self.norm2 = norm(C), norm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (
            self.qkv(self.norm1(x))
            .view(B, T, 3, self.heads, C // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Predicts the next character of every prefix.

    Args:
        vocabulary: number of different characters.
        norm: makes a norm over the given number of channels.
    """

    def __init__(self, vocabulary: int, size: ModelSize = TOY, norm: Norm = nn.LayerNorm):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size.channels)
        self.positions = nn.Embedding(size.context, size.channels)
        self.blocks = nn.ModuleList(Block(size, norm) for _ in range(size.layers))
        self.norm = norm(size.channels)
        self.head = nn.Linear(size.channels, vocabulary)

    def compute_states(self, codes: Tensor) -> Tensor:
        """Return what the last linear layer gets, shape (batch, context, channels), for codes of
        shape (batch, context)."""
        x = self.tokens(codes) + self.positions.weight[: codes.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, codes: Tensor) -> Tensor:
        """Return logits, shape (batch, context, vocabulary), for codes of shape (batch,
        context)."""
        return self.head(self.compute_states(codes))


# takes a Transformer (or what wraps one), codes and targets, each of the two of shape (batch,
# context), and returns the mean loss in nats per character, with its graph
Loss = Callable[[Any, Tensor, Tensor], Tensor]


def compute_cross_entropy(model: nn.Module, codes: Tensor, targets: Tensor) -> Tensor:
    """Return PyTorch's mean cross entropy of the model's logits, in fp32."""
    return F.cross_entropy(model(codes).flatten(0, 1).float(), targets.flatten())


@dataclass(frozen=True)
class Text:
    """A text as numbers: ``codes`` are indices into ``characters``."""

    codes: Tensor
    characters: str

    def entropy(self) -> float:
        """Return the entropy of single characters in nats: the loss of a model that knows only how
        often each occurs."""
        share = torch.bincount(self.codes).double() / len(self.codes)
        return float(-(share[share > 0] * share[share > 0].log()).sum())


def encode(text: str) -> Text:
    """Convert a text to numbers.

    Raises: CourseError if there are fewer than two different characters.
    """
    characters = "".join(sorted(set(text)))
    if len(characters) < 2:
        raise CourseError("a training text needs at least two different characters.")
    number = {character: code for code, character in enumerate(characters)}
    return Text(torch.tensor([number[character] for character in text]), characters)


@dataclass(frozen=True)
class Corpus:
    """Two parts of one text with the same set of characters: one to train on, and one that is held
    out."""

    training: Text
    held_out: Text


@cache
def fables() -> str:
    """Read the training text: 41,000 characters of short fables.

    Raises: CourseError if the file is missing.
    """
    file = Path(__file__).parent / "text" / "fables.txt"
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CourseError(
            f"the training text {paths.shown(file)} is missing. Take it back from git: `git"
            f" checkout -- {paths.shown(file)}`."
        ) from None


def split(text: str, share: float = 0.1) -> Corpus:
    """Convert ``text`` to numbers, and hold out the last ``share`` of it, in whole lines.

    Raises: CourseError if one of the parts would be empty.
    """
    cut = text.rfind("\n", 0, int(len(text) * (1 - share))) + 1
    if not 0 < cut < len(text):
        raise CourseError(
            f"a text of {text.count(chr(10))} lines cannot be cut into a part to train on and one"
            " to hold out."
        )
    whole = encode(text)
    return Corpus(
        Text(whole.codes[:cut], whole.characters), Text(whole.codes[cut:], whole.characters)
    )


def batches(
    text: Text, size: ModelSize, seed: int, device: str | torch.device = "cpu"
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield endless pairs of codes and the codes one position later, each (batch, context). A seed
    gives the same pairs on every device."""
    generator = torch.Generator().manual_seed(seed)
    window = torch.arange(size.context + 1)
    while True:
        starts = torch.randint(len(text.codes) - size.context, (size.batch, 1), generator=generator)
        piece = text.codes[starts + window].to(device)
        yield piece[:, :-1], piece[:, 1:]


def build(
    text: Text, norm: Norm, size: ModelSize = TOY, seed: int = 0, device: str | torch.device = "cpu"
) -> Transformer:
    """Make a model with random weights from ``seed``: the same on every device, and for every norm
    that draws no random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(len(text.characters), size, norm)
    return model.to(device)


def train(
    model: nn.Module,
    text: Text,
    steps: int,
    size: ModelSize = TOY,
    *,
    seed: int = 0,
    rate: float = 2e-2,
    autocast: torch.dtype | None = None,
    compute_loss: Loss = compute_cross_entropy,
) -> Iterator[float]:
    """Train in place with AdamW, and yield the loss of each step in nats per character. The rate
    falls to a tenth along a cosine.

    Args:
        seed: seed of the batches.
        autocast: the dtype of torch.autocast; None for no autocast.
    """
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.55 + 0.45 * math.cos(math.pi * step / steps)
    )
    for _step, (codes, targets) in zip(
        range(steps), batches(text, size, seed, device), strict=False
    ):
        with _few_threads(size):
            with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
                loss = compute_loss(model, codes, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        yield loss.item()


@contextlib.contextmanager
def _few_threads(size: ModelSize) -> Iterator[None]:
    """Inside the block, PyTorch uses one CPU thread for a small model, because more threads would
    wait longer than they compute."""
    threads = torch.get_num_threads()
    if size.rows * size.channels <= _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def learn(
    model: nn.Module,
    corpus: Corpus,
    steps: int,
    size: ModelSize = TOY,
    compute_loss: Loss = compute_cross_entropy,
) -> Iterator[float]:
    """Train in place like :func:`train`, and yield after each step the loss on held-out text, in
    nats per character.

    The loss is the mean over the same 8 pieces each time, so the curve has no noise from single
    batches.
    """
    for _loss in train(model, corpus.training, steps, size, compute_loss=compute_loss):
        yield loss_on(model, corpus.held_out, size, windows=8)


def estimate(
    corpus: Corpus,
    norms: Iterable[Norm],
    steps: int,
    size: ModelSize = TOY,
    *,
    device: str | torch.device = "cpu",
) -> str:
    """Say how long :func:`learn` takes on this machine for all of these norms together, from three
    steps of a model of each that is thrown away."""
    seconds = 0.0
    for norm in norms:
        losses = learn(build(corpus.training, norm, size, device=device), corpus, 4, size)
        next(losses)  # the first step compiles, or makes its first allocations
        start = time.perf_counter()
        timed = len(list(losses))
        seconds += (time.perf_counter() - start) / timed * steps
    if seconds < 90:
        return _("about {seconds} seconds on this machine").format(seconds=max(round(seconds), 1))
    return _("about {minutes} minutes on this machine").format(minutes=round(seconds / 60))


@torch.no_grad()
def loss_on(model: nn.Module, text: Text, size: ModelSize = TOY, *, windows: int = 128) -> float:
    """Return the mean loss over ``windows`` random pieces of the text, in nats per character. It
    has less noise than one small batch."""
    codes, targets = next(
        batches(text, replace(size, batch=windows), seed=1, device=next(model.parameters()).device)
    )
    with _few_threads(size):
        return compute_cross_entropy(model, codes, targets).item()


@torch.no_grad()
def write(
    model: Transformer,
    text: Text,
    length: int,
    *,
    start: str = "\n",
    warmth: float = 0.5,
    seed: int = 0,
) -> str:
    """Let the model write ``length`` characters after ``start``, one after another.

    Args:
        warmth: divisor of the logits ("temperature"): near 0 the likeliest character is taken, at 1
            each with its probability.

    Raises: CourseError if ``start`` is empty or has a character that the text does not have.
    """
    unknown = set(start) - set(text.characters)
    if unknown or not start:
        raise CourseError(f"a sample begins with characters of the text, and {start!r} does not.")
    context = model.positions.num_embeddings
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    codes = [text.characters.index(character) for character in start]
    with _few_threads(ModelSize(batch=1, context=context, channels=model.tokens.embedding_dim)):
        for _character in range(length):
            logits = model(torch.tensor([codes[-context:]], device=device))[0, -1].float().cpu()
            codes.append(
                int(torch.multinomial((logits / warmth).softmax(0), 1, generator=generator))
            )
    return "".join(text.characters[code] for code in codes[len(start) :])


def show(text: str, width: int = 92) -> None:
    """Print ``text`` with its lines broken between words."""
    print("\n".join(textwrap.fill(line, width) for line in text.splitlines()))


def share_of_words(sample: str, text: str) -> float:
    """Return the share of the sample's words (runs of letters) that are words of ``text``. The last
    word may be cut, so it is left out."""
    known_words = set(re.findall("[A-Za-z]+", text))
    words = re.findall("[A-Za-z]+(?=[^A-Za-z])", sample)
    return sum(word in known_words for word in words) / len(words) if words else 0.0
