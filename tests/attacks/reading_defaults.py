# 00a | reading | a kernel of 100,000 defaults
text = 'def copy_kernel(' + ','.join(f'a{i}=1' for i in range(80_000)) + '): pass'
