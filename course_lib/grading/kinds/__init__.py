"""The kinds of exercises: a module for each, which bears its name; see ``kind.py``."""
