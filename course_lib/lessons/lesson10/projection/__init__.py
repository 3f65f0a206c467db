"""Lesson 10: the VJP of a norm as a projection. Rows have three numbers, so each is a point in
space."""
