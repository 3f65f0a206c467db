"""Lesson 04: Welford within blocks and Chan's merge between them, step by step, with count, mean
and M2 of every node."""
