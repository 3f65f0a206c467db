"""Lesson 10: the VJP of a norm as a projection, for rows of three numbers, which are points in space."""
