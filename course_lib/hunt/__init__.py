"""The hunt: a kernel with one thing wrong, drawn from the course's own wrong solutions; find an input that shows it, then the line.

``probe`` is an input of the learner's choice, ``game`` the rules and the score, ``collection`` the kernels, ``draw`` which of them is
open to whom, ``asking`` runs one apart and puts what came back into tables, ``session`` is one hunt as the command line and the panel
play it. Nothing here runs a kernel in the learner's process.
"""
