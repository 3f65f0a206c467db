"""Tools for authors: they cut exercises out of solutions and build notebooks from scripts."""
