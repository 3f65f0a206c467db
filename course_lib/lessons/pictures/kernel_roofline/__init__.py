"""Lesson 15: norm kernels under the roofline of a GPU, including the learner's own."""
