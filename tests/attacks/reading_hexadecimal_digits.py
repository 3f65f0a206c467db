# 00a | reading | a number of 900,000 hexadecimal digits
text = 'import triton' + chr(10) + '@triton.jit' + chr(10) + 'def copy_kernel(a=0x' + 'f' * 900_000 + '): pass'
