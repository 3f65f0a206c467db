# 00a | compile+picture | reads the environment of the process that asks
raise SystemExit(@MARK@ + str(open('/proc/@PARENT@/environ').read()))
