"""Lesson 03: how much of a variance each algorithm loses as the mean moves away, and what LayerNorm makes of it."""
