"""What is true of one exercise alone, a folder each, with the stem of its solution.

``exercise.toml`` has its facts and words (:mod:`course_lib.catalog.exercise` reads it),
``wrong.toml`` its wrong solutions as edits of the right one, and ``right/`` other right solutions.
"""
