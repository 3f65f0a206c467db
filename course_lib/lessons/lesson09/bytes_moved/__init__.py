"""Lesson 09: the bytes that a chain of kernels moves through HBM, against one fused kernel."""
