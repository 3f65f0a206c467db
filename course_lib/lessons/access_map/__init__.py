"""Lesson 07: which program asks for which address, and how often: the accesses of any kernel, stepped through."""
