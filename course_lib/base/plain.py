"""Typed values as plain data, for JSON, and back. Processes send such data to each other, and the
sender may be a submission."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import enum
import functools
import types
import typing
from typing import Any


@functools.cache
def _list_fields(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


@functools.cache
def _list_needed(kind: Any) -> set[str]:
    """Return the names of a dataclass's fields that have no default."""
    missing = dataclasses.MISSING
    return {
        field.name
        for field in dataclasses.fields(kind)
        if field.init and field.default is missing and field.default_factory is missing
    }


def encode(kind: Any, value: Any) -> Any:
    """Return ``value`` as plain data: dicts, lists, texts, numbers, None. Bytes and flat arrays of
    int64 become base64 text.

    ``kind`` is a dataclass or another type. Of an object that has more attributes than the fields
    of the dataclass, only these are written.
    """
    if type(value) in (int, float, str, bool, type(None)):
        return value
    inner = typing.get_args(kind)
    if dataclasses.is_dataclass(kind) or dataclasses.is_dataclass(value):
        fields = _list_fields(kind if dataclasses.is_dataclass(kind) else type(value))
        return {name: encode(hint, getattr(value, name)) for name, hint in fields.items()}
    if isinstance(value, bytes) or type(value).__name__ == "ndarray":
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, list | tuple):
        return [encode(inner[0] if inner else Any, item) for item in value]
    if isinstance(value, dict):
        return {key: encode(inner[1] if inner else Any, item) for key, item in value.items()}
    return value


def decode(kind: Any, plain: Any) -> Any:
    """Return the value of type ``kind`` that :func:`encode` made ``plain`` of.

    ``kind`` is a dataclass, an enum, a union, a tuple, list or dict of such types, a type of JSON,
    bytes, np.ndarray (flat, int64), or Any: then ``plain`` is not checked. A field with a default
    may be missing.

    Raises: ValueError if ``plain`` has not the form of ``kind``.
    """
    if kind is Any or type(plain) is kind:
        return plain
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(kind):
            with contextlib.suppress(ValueError):
                return decode(member, plain)
        raise _refuse(kind, plain)
    if origin in (tuple, list, dict):
        return _decode_container(kind, origin, plain)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, plain)
    return _decode_single(kind, plain)


def _decode_container(kind: Any, origin: Any, plain: Any) -> Any:
    inner = typing.get_args(kind)
    if origin is dict and type(plain) is dict:
        return {inner[0](key): decode(inner[1], item) for key, item in plain.items()}
    if origin is not dict and type(plain) is list:
        kinds = inner[:1] * len(plain) if origin is list or inner[-1] is ... else inner
        if len(kinds) == len(plain):
            return origin(map(decode, kinds, plain))
    raise _refuse(kind, plain)


def _decode_dataclass(kind: Any, plain: Any) -> Any:
    fields = _list_fields(kind)
    if type(plain) is not dict or not _list_needed(kind) <= plain.keys() <= fields.keys():
        raise _refuse(kind, plain)
    return kind(**{name: decode(fields[name], item) for name, item in plain.items()})


def _decode_single(kind: Any, plain: Any) -> Any:
    if kind is bytes and type(plain) is str:
        return base64.b64decode(plain)
    if getattr(kind, "__name__", "") == "ndarray":
        # imported here, because what the command line loads first needs no array
        import numpy as np

        return np.frombuffer(decode(bytes, plain), np.int64)
    if isinstance(kind, enum.EnumType):
        return kind(plain)
    if (kind is float and type(plain) is int) or (kind is type(None) and plain is None):
        return plain
    raise _refuse(kind, plain)


def _refuse(kind: Any, plain: Any) -> ValueError:
    return ValueError(f"{str(plain)[:100]!r} is no {getattr(kind, '__name__', kind)}")
