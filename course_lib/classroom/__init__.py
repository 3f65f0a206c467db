"""The grading of a class: from the learners' submissions to a gradebook. Finished verdicts survive
an interruption.

``grade_class`` joins these steps:

- ``discovery`` finds the learners and their submissions, with ``gradescope_export`` for the list
  of Gradescope.
- ``collecting`` takes the exercise files out of a submission; ``archives`` unpacks a zip or tar in
  a confined process.
- ``engine`` sends every file to the workers that ``workers`` starts, and each worker runs
  ``checking``.
- ``journal`` stores each verdict at once. ``record`` stores the class's data of all weeks.
- ``marking`` makes marks by the class's rules and by the teacher's decisions, which ``own_word``
  reads.
- ``gradebook``, ``reports`` and ``feedback`` write the results; ``similarity`` finds files that are
  nearly equal, and ``predictions`` reads predictions.
- ``out_folder`` manages the folder that holds all this.

``appeal`` explains one mark afterwards, with ``case_files``. ``weeks`` reads the exercises and
deadlines of each week. ``one_submission`` grades a single submission on another system.
"""
