"""Confined processes that run jobs, and the transfer of the files that the jobs leave.

``jobs`` sends a job. ``server`` is the process that forks a confined process for each job.
``machine`` does the work there. ``isolation`` and ``syscalls`` confine the process. Nothing in this
room depends on an exercise or a kernel.
"""
