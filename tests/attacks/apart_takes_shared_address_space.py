# 00a | compile+picture | 8 GB of shared memory, which counts as nobody's data
import mmap

kept = [mmap.mmap(-1, 256 << 20) for _ in range(32)]
raise SystemExit(@MARK@)
