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
    on which ``returned`` does not depend.

    ``call`` runs ``function`` once more. In each run another value that the called function returns
    is made larger by 1.
    """
    module, before = vars(sys.modules[function.__module__]), _list_bytes(returned)
    for name, (least, _most) in wanted.items():
        called, number, count = module[name], 0, int(0 < least <= _MOST_CALLS)
        while number < count:

            def change(*arguments, _called=called, _number=number, **named):
                nonlocal count
                values = list(_called(*arguments, **named))
                count = len(values)
                values[_number] = values[_number] + 1
                return tuple(values)

            module[name] = change
            try:
                same = _list_bytes(call()) == before
            except Exception:  # the code has checked the changed value and raised
                same = False
            finally:
                module[name] = called
            if same:
                words = _(
                    "`{caller}` calls `{name}`, and comes to the same result if `{name}` returns"
                    " something else"
                )
                yield words.format(caller=function.__name__, name=name)
                break
            number += 1


def _list_bytes(returned: Any) -> list[bytes]:
    import numpy as np  # imported here, because the child of a kernel does not import NumPy

    return [
        np.asarray(value).tobytes()
        for value in (returned if isinstance(returned, tuple | list) else (returned,))
    ]
