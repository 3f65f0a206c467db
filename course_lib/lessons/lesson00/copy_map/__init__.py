"""Lesson 00: which program, which lane and which mask bit copies which element of x to y."""
