# 00a | compile+picture | reads another learner's file
raise SystemExit(@MARK@ + str(open('@OTHER@').read()))
