"""Grades a class: many people's submissions in, a gradebook out, and nothing lost on the way.

What a class goes through, file by file: ``discovery`` says who handed in what, ``collecting`` takes the exercise files out of one
submission (``archives`` does it for a zip or tar, in a confined process), ``engine`` has every file checked by workers that
``workers`` starts and ``checking`` runs in, ``journal`` keeps each verdict as soon as it is there, ``record`` knows all weeks so far, ``marking``
makes marks of it by the rules and by what ``own_word`` reads of the teacher's, ``gradebook`` and ``reports`` write what came out, and
``grade_class`` joins them. ``weeks`` reads which exercises a week asks for. ``one_submission`` grades a class of one where another system runs it.
"""
