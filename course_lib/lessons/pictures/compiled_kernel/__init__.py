"""Lesson 08: the compiler's report on a kernel, and the PTX and SASS of the source line that the
learner selects."""
