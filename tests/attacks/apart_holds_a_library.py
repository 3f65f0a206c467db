# 00a | compile+picture | takes a lease on a library, so that others wait for it
import fcntl
import this

with open(this.__file__) as library:
    fcntl.fcntl(library, 1024, fcntl.F_RDLCK)  # F_SETLEASE
raise SystemExit(@MARK@)
