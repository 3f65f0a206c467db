"""Lesson 13: the persistent kernel: programs that walk over tiles of rows, and a second stage that
adds up their partial sums."""
