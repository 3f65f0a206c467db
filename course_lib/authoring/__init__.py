"""For authors: cutting exercises out of solutions, building notebooks out of their scripts."""
