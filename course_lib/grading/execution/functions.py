"""Run functions in NumPy or PyTorch: tensors in, one tensor or a tuple of them out."""

from __future__ import annotations

import abc
import contextlib
import fractions
import importlib
import numbers
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import AND, list_words
from course_lib.grading.cases.plan import CaseLaunch, CaseTensor
from course_lib.grading.execution.case_runner import CaseRunner
from course_lib.grading.execution.dependence import find_ignored
from course_lib.grading.submission.places import Span
from course_lib.grading.submission.shortcuts import Shortcuts
from course_lib.grading.submission.source import Unreadable
from course_lib.launching.faults import FaultKind, Misuse, describe_line, find_worst

# libraries whose functions run in Python's own frames, so that a call of one can be seen
_WATCHED = frozenset({"numpy", "statistics"})
_LIBRARIES = _WATCHED | {"torch"}


def _describe_change(name: str, property_name: str, was: Any, now: Any) -> str:
    return _("{name} is an input; its {what} was {was} and is {now} now").format(
        name=name, what=property_name, was=was, now=now
    )


def _describe_layout(shape: Sequence[int], dtype: Any) -> str:
    words = _("shape {shape}").format(shape=_tuple(shape))
    return _("{shape}, {dtype}").format(shape=words, dtype=dtype)


class Refused(BaseException):
    """A forbidden operation ran. ``except Exception`` in the submission does not catch it."""


class WrongReturn(Exception):
    """A function returned something else than it was asked for. ``str()`` describes it."""


def describe_wrong_return(function: str, got: str, expected: str) -> WrongReturn:
    """Make the exception for a function that returned ``got`` in place of ``expected``, both in
    words."""
    return WrongReturn(
        _("`{function}` returned {got}; asked for: {wanted}").format(
            function=function, got=got, wanted=expected
        )
    )


class Functions(CaseRunner, abc.ABC):
    """Cases that call a plain function: tensors in, one tensor or a tuple of them out."""

    noun: str  # the word for the type that a function returns

    def __init__(self) -> None:
        self.shortcuts = Shortcuts({})

    def begin(self, module, code, cases, rules) -> None:
        self.shortcuts = Shortcuts(rules["forbidden"] if rules else {})

    def run(self, function, case: CaseLaunch, data: bytes) -> bytes:
        memory = bytearray(data)
        views = {t.name: self.view(memory, t) for t in case.tensors}
        inputs = {t.name: views[t.name] for t in case.tensors if not t.is_output}
        with (
            self.watching(inputs) as changes,
            _profiling(self.check_called),
            _listening(function, case.calls) as calls,
        ):
            returned = (call := lambda: function(*case.fill_in(views)))()
        self.misuse = find_worst(*changes, *calls)
        outputs = [t for t in case.tensors if t.is_output]
        for t, value in zip(outputs, self.split(returned, outputs, case.entry_point), strict=True):
            self.take(views[t.name], value, t)
        if self.misuse is None and case.calls:
            ignored = find_ignored(function, case.calls, call, returned)
            self.misuse = find_worst(*(Misuse(FaultKind.UNCALLED, words) for words in ignored))
        return bytes(memory)

    def check_called(self, frame, event: str, argument) -> None:
        """Refuse a function of NumPy's or of Python's ``statistics`` that is a shortcut, by
        whichever way it was found.

        Raises: Refused.
        """
        if event != "call" or frame.f_globals.get("__name__", "").partition(".")[0] not in _WATCHED:
            return
        name = frame.f_code.co_name.lstrip("_")
        if why := self.shortcuts.describe(name, name):
            self.refuse_operation(why)

    def refuse_operation(self, why: str) -> NoReturn:
        """Raise Refused, and remember the refusal: the code may catch the exception."""
        line = _find_learner()
        self.refusal = self.refusal or Unreadable(
            "not_allowed", why, why, None if line is None else Span(line)
        )
        raise Refused(why)

    def split(self, returned: Any, outputs: list[CaseTensor], function: str) -> tuple | list:
        """Return the values that a function returned, one per output. Several values come in a
        tuple of any class or in a list.

        Raises: WrongReturn if the function returned something else, or a tuple around a single
        output.
        """
        kind = type(returned)  # isinstance would believe the __class__ that the object claims
        if kind is not tuple and issubclass(kind, tuple):
            # the items themselves: a subclass can define another __iter__
            returned = tuple(tuple.__iter__(returned))
        if kind is list and len(outputs) == 1 and outputs[0].any_dtype and outputs[0].shape:
            return (returned,)  # one array, whose numbers are not separate outputs
        if returned is None:
            got = "None"
        elif type(returned) not in (tuple, list):
            if len(outputs) == 1:
                return (returned,)
            got = (
                _("one {noun}").format(noun=_(self.noun))
                if issubclass(kind, self.types)
                else f"`{kind.__name__}`"
            )
        elif len(returned) == len(outputs) == 1:
            words = _("`{function}` returned a {kind} of one; asked for: the {noun} itself")
            raise WrongReturn(
                words.format(function=function, kind=kind.__name__, noun=_(self.noun))
            )
        elif len(returned) == len(outputs):
            return returned
        else:
            got = (_("{count} value") if len(returned) == 1 else _("{count} values")).format(
                count=len(returned)
            )
        raise describe_wrong_return(function, got, list_words(t.name for t in outputs))

    @property
    @abc.abstractmethod
    def types(self) -> tuple[type, ...]:
        """Return the types that a function may return. Subclasses are not allowed."""

    @abc.abstractmethod
    def watching(self, inputs: dict[str, Any]) -> contextlib.AbstractContextManager[list[Misuse]]:
        """Yield a list. After the block it contains a Misuse for each change that the block made to
        ``inputs``."""

    @abc.abstractmethod
    def view(self, memory: bytearray, t: CaseTensor) -> Any:
        """Return a tensor or array over the part of ``memory`` that the description ``t`` names."""

    @abc.abstractmethod
    def take(self, view: Any, value: Any, t: CaseTensor) -> None:
        """Copy a returned value into its view.

        Raises: WrongReturn if it has another type, shape or dtype than asked for.
        """

    def widen(self, value: Any, t: CaseTensor) -> Any:
        """Convert a list of numbers to an array, and True or a fraction to a number, where the
        output may have any dtype."""
        if t.whole and not issubclass(type(value), numbers.Integral):
            words = _("{name} came back as {got}; asked for: a whole number, an `int`")
            raise WrongReturn(
                words.format(
                    name=t.name, got=value if type(value) is float else type(value).__name__
                )
            )
        if not t.any_dtype:
            return value
        if t.shape and type(value) is list:
            try:
                return self.make_array(value)
            except (TypeError, ValueError, RuntimeError):
                self.refuse(t, _("a list that is no array of numbers"))
        if type(value) is fractions.Fraction:
            return float(value)
        return int(value) if type(value) is bool else value

    @abc.abstractmethod
    def make_array(self, numbers: list) -> Any:
        """Make a tensor or array of these numbers. Raises: TypeError, ValueError or RuntimeError if
        they are no numbers."""

    @staticmethod
    def refuse(t: CaseTensor, got: str) -> None:
        shape = _("shape {shape}").format(shape=_tuple(t.shape)) if t.shape else _("one number")
        words = _("{name} came back as {got}; asked for: {shape}, {dtype}")
        raise WrongReturn(words.format(name=t.name, got=got, shape=shape, dtype=t.dtype))


def _tuple(shape) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


@contextlib.contextmanager
def _listening(function, wanted: dict[str, tuple[int, int | None]]) -> Iterator[list[Misuse]]:
    """Yield a list. After the block it contains a Misuse for each function whose calls in the block
    differ from ``wanted``.

    ``wanted`` maps other entry points to the fewest and the most calls that ``function`` may make;
    None is no limit. Calls under another name count. Where there is a limit, another function of
    the file may not be called instead: a few times per allowed call are enough for every helper.
    """
    module, faults = vars(sys.modules[function.__module__]), []
    lines: dict[str, list[int]] = {name: [] for name in wanted}

    def listen(name: str, called):
        def listener(*arguments, **named):
            lines[name].append(sys._getframe(1).f_lineno)
            return called(*arguments, **named)

        return listener

    called = {name: module[name] for name in wanted}
    limits = [most for _least, most in wanted.values() if most is not None]
    module.update({name: listen(name, other) for name, other in called.items()})
    try:
        with _counting(module, limits) as lines_by_code:
            yield faults
    finally:
        module.update(called)
    for name, (least, most) in wanted.items():
        by_any_name = lines_by_code.pop(getattr(called[name], "__code__", None), [])
        at, caller = max(lines[name], by_any_name, key=len), function.__name__
        if at and most == 0:
            words = _(
                "`{caller}` calls `{name}`{line}; the exercise asks each for an algorithm of"
                " its own"
            )
            words = words.format(caller=caller, name=name, line=describe_line(at[0]))
            faults.append(Misuse(FaultKind.CALLS, words, line=at[0]))
        elif most is not None and len(at) > most:
            faults.append(_describe_often(caller, name, at, most))
        elif len(at) < least:
            words = _(
                "`{caller}` calls `{name}` {count} times, where at least {least} are asked for"
            )
            faults.append(
                Misuse(
                    FaultKind.UNCALLED,
                    words.format(caller=caller, name=name, count=len(at), least=least),
                )
            )
    most_of_others = _CALLS_OF_HELPERS * (1 + max(limits, default=0))
    for code, at in lines_by_code.items():
        if any(limits) and len(at) > most_of_others:
            faults.append(_describe_often(function.__name__, code.co_name, at, most_of_others))


_CALLS_OF_HELPERS = 8  # calls of one helper per allowed call, such as one for each array


def _describe_often(caller: str, name: str, at: list[int], most: int) -> Misuse:
    words = _("`{caller}` calls `{name}` {count} times, where at most {most} are allowed")
    words = words.format(caller=caller, name=name, count=len(at), most=most)
    return Misuse(FaultKind.OFTEN, words, line=at[most])


@contextlib.contextmanager
def _counting(module: dict[str, Any], limits: list[int]) -> Iterator[dict[Any, list[int]]]:
    """Yield a dictionary. After the block it maps the code of each function of ``module`` that ran
    to the lines that called it. Without ``limits`` nothing is counted."""
    lines: dict[Any, list[int]] = {}

    def count(frame, event: str, argument) -> None:
        code = frame.f_code
        # a generator and a comprehension are no steps of their own
        if event == "call" and frame.f_globals is module and not code.co_name.startswith("<g"):
            lines.setdefault(code, []).append(frame.f_back.f_lineno)

    with _profiling(count) if limits else contextlib.nullcontext():
        yield lines


@contextlib.contextmanager
def _profiling(function: Callable[[Any, str, Any], None]) -> Iterator[None]:
    """Call ``function`` at each call of this thread inside the block, and then what was called
    before."""
    outer = sys.getprofile()

    def call_both(frame, event: Any, argument) -> None:
        function(frame, event, argument)
        if outer is not None:
            outer(frame, event, argument)

    sys.setprofile(call_both)
    try:
        yield
    finally:
        sys.setprofile(outer)


def _find_learner() -> int | None:
    """Return the line of the learner's file that called the current operation of a library; None
    if other code did, such as the interpreter."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("course_lib.") and module.partition(".")[0] not in _LIBRARIES:
            return frame.f_lineno if module == "kernels" else None
        frame = frame.f_back
    return None


class NumPyFunctions(Functions):
    noun = N_("array")

    def __init__(self):
        super().__init__()
        import ml_dtypes
        import numpy as np

        self.np = np
        self.dtypes = {
            "fp32": np.dtype(np.float32),
            "fp16": np.dtype(np.float16),
            "bf16": np.dtype(ml_dtypes.bfloat16),
        }
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    @property
    def types(self) -> tuple[type, ...]:
        return (self.np.ndarray, self.np.generic)

    def view(self, memory: bytearray, t: CaseTensor):
        flat = self.np.frombuffer(
            # an array on ``bytes`` cannot be made writeable
            memory if t.is_output else bytes(memory),
            dtype=self.dtypes[t.dtype],
            offset=t.start,
            count=(t.nbytes + t.offset - t.start) // t.itemsize,
        )
        array = self.np.lib.stride_tricks.as_strided(
            flat, t.shape, [stride * t.itemsize for stride in t.strides]
        )
        # array[()] is NumPy's number instead of an array without dimensions
        return array if t.shape or t.is_output else array[()]

    @contextlib.contextmanager
    def watching(self, inputs: dict[str, Any]) -> Iterator[list[Misuse]]:
        arrays = {
            name: array for name, array in inputs.items() if isinstance(array, self.np.ndarray)
        }
        before = {name: (array.shape, array.strides, array.dtype) for name, array in arrays.items()}
        changes: list[Misuse] = []
        try:
            yield changes
        except ValueError as refused:
            if not any(word in str(refused) for word in ("read-only", "WRITEABLE")):
                raise
            line = next(
                (
                    t.tb_lineno
                    for t in _list_frames(refused)
                    if t.tb_frame.f_globals.get("__name__") == "kernels"
                ),
                None,
            )
            words = _("an input is written{line}: {names} belong to the caller")
            if len(arrays) == 1:
                words = _("an input is written{line}: {names} belongs to the caller")
            words = words.format(line=describe_line(line), names=list_words(arrays, AND))
            raise Misuse(FaultKind.INPUT, words, "", line) from None
        for name, array in arrays.items():
            after = array.shape, array.strides, array.dtype
            for property_name, was, now in zip(
                ("shape", "strides", "dtype"), before[name], after, strict=True
            ):
                if was != now:
                    changes.append(
                        Misuse(
                            FaultKind.INPUT, _describe_change(name, property_name, was, now), name
                        )
                    )

    def make_array(self, numbers):
        return self.np.array(numbers)

    def take(self, view, value, t: CaseTensor) -> None:
        value = self.widen(value, t)
        if not t.shape and type(value) in (int, float):
            value = self.dtypes[t.dtype].type(value)
        kind = type(value)
        if kind is not self.np.ndarray and (t.shape or not issubclass(kind, self.np.generic)):
            kinds = {
                self.np.ndarray: _("a subclass of np.ndarray, "),
                self.np.generic: _("one number, "),
            }
            description = next(
                (words for base, words in kinds.items() if issubclass(kind, base)), ""
            )
            self.refuse(t, f"{description}`{kind.__name__}`")
        if tuple(value.shape) != t.shape or not (
            value.dtype == view.dtype or (t.any_dtype and value.dtype.kind in "fiub")
        ):
            dtype = self.names.get(value.dtype, value.dtype)
            self.refuse(t, _describe_layout(value.shape, dtype))
        view[...] = value


def _list_frames(error: BaseException) -> list:
    """Return the traceback's entries, the innermost first."""
    frames, entry = [], error.__traceback__
    while entry is not None:
        frames.append(entry)
        entry = entry.tb_next
    return frames[::-1]


class TorchFunctions(Functions):
    """Cases of functions in PyTorch operations, on the CPU. ``modules``: what a case would import.
    The server imports it before the forks."""

    noun = N_("tensor")
    modules: tuple[str, ...] = ()

    def __init__(self):
        super().__init__()
        import torch

        for name in self.modules:
            importlib.import_module(name)
        from torch.utils._python_dispatch import TorchDispatchMode

        self.torch = torch
        torch.set_num_threads(1)
        # PyTorch's first sum initialises some of its parts; this happens once, before the forks.
        torch.ones(4, dtype=torch.float16).float().mean()
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

        runner = self

        class InPlace(TorchDispatchMode):
            """Records each operation that changes a tensor in place, also through ``.data``, which
            leaves PyTorch's version counter."""

            @classmethod
            def _should_skip_dynamo(cls) -> bool:
                # By default a wrapper disables torch.compile. That would import the compiler, which
                # is slow.
                return False

            def __init__(self, owners: dict[int, str], changes: list[Misuse]):
                super().__init__()
                self.owners, self.changes = owners, changes

            def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                runner.check_operation(operation._schema.name)
                schema = operation._schema
                if schema.is_mutable and not self.changes:
                    for position, parameter in enumerate(schema.arguments):
                        value = (
                            args[position] if position < len(args) else kwargs.get(parameter.name)
                        )
                        if parameter.is_write and isinstance(value, torch.Tensor):
                            name = self.owners.get(value.untyped_storage().data_ptr())
                            line = _find_learner()
                            if name is not None and line is not None:
                                words = _("{name} is an input and is changed in place{line}")
                                words = words.format(name=name, line=describe_line(line))
                                self.changes.append(Misuse(FaultKind.INPUT, words, name, line))
                return operation(*args, **kwargs)

        self.in_place = InPlace

    def check_operation(self, name: str) -> None:
        """Refuse a PyTorch operation that is a shortcut. The text alone does not show it: a module
        of torch.nn runs such operations inside.

        Raises: Refused.
        """
        why = self.shortcuts.describe(name.rpartition("::")[2], name)
        if why is None and self.torch._C._current_graph_task_id() != -1:
            why = self.shortcuts.describe("backward", "backward")
        if why is not None:
            self.refuse_operation(why)

    @property
    def types(self) -> tuple[type, ...]:
        return (self.torch.Tensor,)

    def view(self, memory: bytearray, t: CaseTensor):
        flat = self.torch.frombuffer(
            memory,
            dtype=self.dtypes[t.dtype],
            offset=t.start,
            count=(t.nbytes + t.offset - t.start) // t.itemsize,
        )
        return flat.as_strided(t.shape, t.strides)

    @contextlib.contextmanager
    def watching(self, inputs: dict[str, Any]) -> Iterator[list[Misuse]]:
        before = {name: self.describe(tensor) for name, tensor in inputs.items()}
        changes: list[Misuse] = []
        with self.in_place(
            {tensor.untyped_storage().data_ptr(): name for name, tensor in inputs.items()}, changes
        ):
            yield changes
        for name, tensor in inputs.items():
            after = self.describe(tensor)
            differing = [key for key, was in before[name].items() if was != after[key]]
            changed = differing[0] if differing else None
            if changed in ("address", "version"):
                words = _("{name} is an input and is changed in place{line}").format(
                    name=name, line=""
                )
                changes.append(Misuse(FaultKind.INPUT, words, name))
            elif changed is not None:
                words = _describe_change(name, changed, before[name][changed], after[changed])
                changes.append(Misuse(FaultKind.INPUT, words, name))

    @staticmethod
    def describe(tensor) -> dict[str, Any]:
        """Return everything of a tensor that a function could change.

        The version counter stands for the values: it counts changes through views, too.
        """
        return {
            "shape": tuple(tensor.shape), "strides": tensor.stride(), "dtype": tensor.dtype,
            "address": tensor.data_ptr(),
            "version": tensor._version,
        }  # fmt: skip

    def make_array(self, numbers):
        if any(type(number) is self.torch.Tensor for number in numbers):
            return self.torch.stack(tuple(numbers))
        return self.torch.tensor(numbers)

    def take(self, view, value, t: CaseTensor) -> None:
        value = self.widen(value, t)
        if not t.shape and type(value) in (int, float):
            value = self.torch.tensor(value, dtype=view.dtype)
        kind = type(value)
        if kind is not self.torch.Tensor:
            description = (
                _("a subclass of torch.Tensor, ") if issubclass(kind, self.torch.Tensor) else ""
            )
            self.refuse(t, f"{description}`{kind.__name__}`")
        if tuple(value.shape) != t.shape or not (
            value.dtype == view.dtype or (t.any_dtype and not value.is_complex())
        ):
            dtype = self.names.get(value.dtype, str(value.dtype).removeprefix("torch."))
            self.refuse(t, _describe_layout(value.shape, dtype))
        view.copy_(value)
