"""What everything else stands on: errors a person can read, paths, files, the choice of GPU or interpreter, child processes.

Imports nothing else of the course, and nothing heavy.
"""
