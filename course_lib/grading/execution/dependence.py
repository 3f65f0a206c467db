"""Find out whether the return value of a function affects the result of the function that calls
it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from course_lib.base.translation import gettext as _

_MOST_CALLS = 64  # the caller runs once more for each value that the called function returns


def find_ignored(
    function: Callable,
    wanted: dict[str, tuple[int, int | None]],
    call: Callable[[], Any],
    returned: Any,
) -> Iterator[str]:
    """Yield a sentence for each function that ``wanted`` asks to be called and that returns a value
    on which ``returned`` does not depend, in all of the calls or in one of the ``least``.

    ``call`` runs ``function`` once more. In each run another value that the called function returns
    is made larger by 1.
    """
    module, before = vars(sys.modules[function.__module__]), _list_bytes(returned)
    for name, (least, _most) in wanted.items():
        called, count = module[name], 1

        def is_same(number: int, changed_call: int | None, name=name, called=called) -> bool:
            """Return True if the result stays if value ``number`` changes, of every call or of
            one."""
            calls = 0

            def change(*arguments, **named):
                nonlocal calls, count
                values = list(called(*arguments, **named))
                count = len(values)
                if changed_call in (None, calls):
                    values[number] = values[number] + 1
                calls += 1
                return tuple(values)

            module[name] = change
            try:
                return _list_bytes(call()) == before
            except Exception:  # the code has checked the changed value and raised
                return False
            finally:
                module[name] = called

        if not 0 < least <= _MOST_CALLS:
            continue
        number = 0
        while number < count and not is_same(number, None):
            number += 1
        if number < count:
            words = _(
                "`{caller}` calls `{name}`, and comes to the same result if `{name}` returns"
                " something else"
            )
            yield words.format(caller=function.__name__, name=name)
        elif any(is_same(number, at) for at in range(least) for number in range(count)):
            words = _(
                "`{caller}` comes to the same result if one of its calls of `{name}` returns"
                " something else"
            )
            yield words.format(caller=function.__name__, name=name)


def _list_bytes(returned: Any) -> list[bytes]:
    import numpy as np  # imported here, because the child of a kernel does not import NumPy

    return [
        np.asarray(value).tobytes()
        for value in (returned if isinstance(returned, tuple | list) else (returned,))
    ]
