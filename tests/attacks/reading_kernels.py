# 00a | reading | 20,000 kernels
text = 'import triton' + (chr(10) + '@triton.jit' + chr(10) + 'def k(): a.b.c.d').join([''] * 20_000)
