# 00a | compile+picture | changes limits, priority and processors of the process that asks
import os
import resource

tried = (
    lambda: resource.prlimit(@PARENT@, resource.RLIMIT_NOFILE),
    lambda: os.setpriority(os.PRIO_PROCESS, @PARENT@, 5),
    lambda: os.sched_setaffinity(@PARENT@, [0]),
    lambda: os.sched_setscheduler(@PARENT@, os.SCHED_BATCH, os.sched_param(0)),
)
for number, attempt in enumerate(tried):
    try:
        attempt()
    except OSError:
        continue
    raise SystemExit(@MARK@ + str(number))
