# 00a | reading | a hundred thousand decorators
text = 'import triton' + chr(10) + ('@triton.jit' + chr(10)) * 80_000 + 'def copy_kernel(): pass'
