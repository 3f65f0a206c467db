"""Lessons 01, 06 and 07: a blocked norm kernel, one block at a time, with its lanes, accumulators and row statistics."""
