"""The cases of an exercise: shape and values, buffers, plan; and the hidden cases that are drawn
from an instructor's secret."""
