"""Run jobs in confined processes, and bring back the bytes that they leave.

``jobs`` hands a job over. ``server`` is the process that forks a confined process for each job. ``machine`` does the work there.
``isolation`` and ``syscalls`` confine the process. Nothing in this room depends on an exercise or a kernel.
"""
