"""A tab puts this folder on ``sys.path``: each package in it has the name of the one that it stands for."""
