"""How a reference kernel is launched.

``tables`` holds the numbers (blocks, rows, warps, by row length), ``choice`` says which algorithm a tensor gets,
``device`` asks the device, and ``operands`` makes a kernel's arguments of tensors.
"""
