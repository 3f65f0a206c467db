"""Lesson 11: leave a term of the VJP out, and read from the error of dx which one it was."""
