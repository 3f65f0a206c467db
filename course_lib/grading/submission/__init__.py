"""Reads a learner's file without running it, and finds in it what the exercise asks for."""
