"""Lesson 07: what the compiler makes of a kernel, and the PTX and SASS of the source lines that the reader selects."""
