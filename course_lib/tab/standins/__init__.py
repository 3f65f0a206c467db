"""Packages that stand in for others in a tab, under the same names. A tab puts this folder on
``sys.path``."""
