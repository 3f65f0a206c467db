# 00a | compile+picture | reads a file outside its folder
raise SystemExit(@MARK@ + str(open('@VICTIM@').read()))
