# 00a | compile+picture | changes mode, times, owner and attributes of a file outside its folder
import os

tried = (
    lambda: os.chmod('@VICTIM@', 0o777), lambda: os.utime('@VICTIM@', (0, 0)), lambda: os.chown('@VICTIM@', os.getuid(), -1),
    lambda: os.setxattr('@VICTIM@', 'user.course', b'x'),
)
for number, attempt in enumerate(tried):
    try:
        attempt()
    except OSError:
        continue
    raise SystemExit(@MARK@ + str(number))
