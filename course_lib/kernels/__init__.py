"""Triton reference kernels and their launch tables. Each family is one file, which can be read from
top to bottom."""

from __future__ import annotations
