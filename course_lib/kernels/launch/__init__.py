"""The launch of a reference kernel.

``tables`` has the numbers (blocks, rows and warps by row length), ``choice`` chooses the algorithm for a tensor,
``device`` reads properties of the device, ``operands`` turns tensors into a kernel's arguments, and ``launcher``
launches a kernel with little host time.
"""
