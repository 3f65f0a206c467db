# 00a | reading | formatted texts in formatted texts
text = 'x = f"{' + 'f\'{1}\' + ' * 60_000 + '1}"'
