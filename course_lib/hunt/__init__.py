"""The hunt: the learner gets a kernel with one mistake and has to find an input that shows it, then
the line.

The kernels come from the course's own wrong solutions. ``probe`` is an input that the learner
chooses, ``game`` has the rules and the score, ``collection`` the kernels. ``draw`` chooses the
hunts that a learner may play, ``asking`` runs a kernel in another process and makes tables of its
results, and ``session`` is one hunt for the panel. ``course hunt`` opens ``hunt.ipynb``. No kernel
runs in the learner's process.
"""
