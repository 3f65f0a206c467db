# 00a | compile+picture | reads the course's solution
raise SystemExit(@MARK@ + str(open('@ROOT@/solutions/ex00a_masked_copy.py').read()[:40]))
