"""Decides whether the outputs that came back are right, and says what is wrong with them: tolerance, causes, words."""
