"""Runs what a submission asks for in processes that are shut in, and brings back bytes.

``jobs`` is the side that asks, ``server`` the process that forks a confined process for each job, ``machine`` what does the
work there, ``isolation`` and ``syscalls`` what shuts it in. This room knows no exercise and no kernel.
"""
