# 00a | compile+picture | changes the mode of a library through its descriptor
import os
import this

with open(this.__file__) as library:
    os.fchmod(library.fileno(), os.fstat(library.fileno()).st_mode)
raise SystemExit(@MARK@)
