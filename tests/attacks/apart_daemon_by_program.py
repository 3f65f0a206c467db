# 00a | compile+picture | starts another program and leaves it behind
import subprocess

subprocess.Popen(['sleep', '61'], start_new_session=True)
