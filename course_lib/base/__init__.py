"""The foundation of all other rooms: errors that a person can read, paths, files, the choice of GPU
or interpreter, child processes.

It imports nothing else of the course, and no large package.
"""
