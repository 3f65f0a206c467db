"""Decides whether what came back is right, and if it is not, what is wrong: oracle, tolerance, causes, words."""
