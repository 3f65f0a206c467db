"""Typed values as plain data: what comes back is what was sent, and anything of another form is
refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.base.plain import decode, encode


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    colour: Colour
    counts: dict[int, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    pair: tuple[int, str | None]
    data: bytes = b""
    part: Part | None = None


@dataclass(frozen=True)
class SecretPart(Part):
    secret: str = "never sent"


WHOLE = Whole(
    (Part("a", Colour.RED, {3: (1.5, 2.0)}),), (7, None), b"\x00\xff", Part("b", Colour.RED)
)
PLAIN = json.loads(json.dumps(encode(Whole, WHOLE)))


def test_what_was_sent_comes_back():
    assert decode(Whole, PLAIN) == WHOLE
    offsets = np.arange(3) ** 20
    assert (
        decode(np.ndarray, json.loads(json.dumps(encode(np.ndarray, offsets)))) == offsets
    ).all()


def test_only_the_fields_of_the_type_are_sent():
    plain = encode(Whole, Whole((SecretPart("a", Colour.RED),), (1, "x")))
    assert "never sent" not in json.dumps(plain) and decode(
        Whole, json.loads(json.dumps(plain))
    ).parts == (Part("a", Colour.RED),)


@pytest.mark.parametrize(
    "changed",
    [
        {"parts": {}}, {"parts": [None]}, {"parts": [{"name": "a"}]},
        {"parts": [{"name": "a", "colour": "blue"}]}, {"pair": [True, None]},
        {"parts": [{"name": "a", "colour": ["red"]}]}, {"pair": [1]}, {"pair": [1, 2]}, {"data": 3},
        {"data": "x"}, {"more": 1}, {"part": 0},
        {"parts": [{"name": "a", "colour": "red", "counts": {"x": []}}]},
        {"parts": [{"name": "a", "colour": "red", "counts": {"1": ["0"]}}]},
    ],
    ids=repr,
)  # fmt: skip
def test_another_form_is_refused(changed):
    with pytest.raises(ValueError):
        decode(Whole, PLAIN | changed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_anything_else_is_refused_in_one_way(plain):
    with pytest.raises(ValueError):
        decode(Whole, plain)
