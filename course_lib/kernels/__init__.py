"""Triton reference kernels and their launch tables. Each family is one file, to be read from top to bottom."""

from __future__ import annotations
