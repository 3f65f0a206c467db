"""Launches of a norm kernel that somebody else chose: what the compiler says of them, and how near the floor they come on a GPU."""
