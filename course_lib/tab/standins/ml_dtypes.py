"""A stand-in for ml_dtypes in a tab whose Pyodide has none (0.27): fp16 takes the place of bf16 and
of the 8-bit formats."""

import numpy

bfloat16 = float8_e4m3fn = float8_e5m2 = numpy.float16
finfo = numpy.finfo
