"""Lesson 03: the error of each variance algorithm as the mean moves away from zero, and the
LayerNorm output that follows."""
