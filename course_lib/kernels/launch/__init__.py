"""The launch of a reference kernel.

``device_classes`` has the tables (algorithm, blocks, rows and warps by row length), ``tables``
reads a launch from them, ``choice`` chooses the algorithm for a tensor, ``device`` reads properties
of the device, ``operands`` turns tensors into a kernel's arguments, and ``launcher`` launches a
kernel with little host time.
"""
