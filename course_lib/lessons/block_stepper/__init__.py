"""Lessons 01, 02 and 07: a norm kernel, one block at a time, with its lanes, accumulators and row statistics."""
