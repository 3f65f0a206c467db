"""Lesson 15: norm kernels under the roofline of a GPU, the learner's own among them."""
