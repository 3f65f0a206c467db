"""Lessons 01, 02 and 07: step through a norm kernel, block by block, with its lanes, accumulators
and row statistics."""
