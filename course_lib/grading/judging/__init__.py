"""Decide whether the outputs that came back are right, and explain what is wrong with them:
tolerance, causes, words."""
