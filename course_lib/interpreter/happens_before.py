"""Find accesses of different programs whose order nothing determines, by vector clocks over the
steps of one schedule, for every byte.

The vector clocks are those of DJIT+, in NumPy arrays. Sources: Flanagan and Freund 2009,
"FastTrack: Efficient and Precise Dynamic Race Detection"; Lamport 1978, "Time, Clocks, and the
Ordering of Events in a Distributed System".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.interpreter import hooks
from course_lib.interpreter.findings import NoBarrier, Race, Schedule, ScheduledStep, verb

_LOAD, _STORE, _ATOMIC_READ, _ATOMIC_WRITE = range(4)
_CONFLICTS = {
    _LOAD: (_STORE, _ATOMIC_WRITE),
    _STORE: (_LOAD, _STORE, _ATOMIC_READ, _ATOMIC_WRITE),
    _ATOMIC_READ: (_STORE,),
    _ATOMIC_WRITE: (_LOAD, _STORE),
}
_PAGE = 4096  # bytes
# An operation is done by one thread of the program, by all threads together, or by each thread for
# itself: a load of a single number.
_ONE, _ALL, _EACH = range(3)


class _Track:
    """The last step of one kind, by one thread or all threads of one program, for each byte of a
    page; 0 if there is none."""

    __slots__ = ("high", "last", "low", "steps")

    def __init__(self):
        self.steps = np.zeros(_PAGE, np.int32)
        self.last, self.low, self.high = 0, _PAGE, 0


# for each kind of access: program, and who of its threads -> the last steps
_Page = tuple[dict[tuple[int, int], _Track], ...]


class VectorClocks:
    """The steps that come before the next step of program ``number`` in every order; there are
    ``count`` programs.

    ``program``, shape (count,), int32, has the last such step of each program. ``threads``, shape
    (2, 2 count), has the same for threads: the rows are the one thread and all threads of this
    program, the columns are the same two of each program in turn.
    """

    def __init__(self, number: int, count: int):
        self.number = number
        self.program = np.zeros(count, np.int32)
        self.threads = np.zeros((2, 2 * count), np.int32)


class RaceDetector:
    """Follows the steps of a schedule as they happen, and keeps the pairs of steps that no clock
    orders."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.pages: dict[int, _Page] = {}
        # address -> the clocks that an acquire there takes over
        self.released: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.changed_by_atomic: dict[int, int] = {}
        self.narrow: set[int] = set()  # the steps that are atomics of the scope "cta"
        self.pairs: dict[tuple, Race | NoBarrier] = {}
        # A number that each thread has loaded reaches memory by a later store or atomic of all
        # threads. Until there is one, a finding with such a load is kept here: program of the load
        # -> key of ``pairs`` -> the finding, and how often it was found.
        self.pending: dict[int, dict[tuple, tuple[NoBarrier, int]]] = {}
        # program -> its last step in which all threads wrote
        self.last_block_write: dict[int, int] = {}
        # program -> its last acquire whose result no other thread waits for
        self.acquired_alone: dict[int, ScheduledStep] = {}
        self.times: dict[tuple, int] = {}

    def add_step(
        self,
        now: int,
        step: ScheduledStep,
        access: hooks.MemoryAccess,
        wrote: bool,
        live: np.ndarray,
        clocks: VectorClocks,
    ) -> None:
        """Add step number ``now`` (from 1), which is about to happen. ``live`` has its addresses,
        ascending, none twice."""
        # Lane 0 of a block is in the thread that does what is done once. If the mask leaves that
        # lane alone, no other thread takes part.
        lane_0_alone = step.lanes == 1 and bool(access.mask.flat[0]) and not access.is_atomic
        thread_kind = _ONE if access.addresses.size == 1 or lane_0_alone else _ALL
        if access.sem == "cta":  # for other programs no atomic at all
            access_kind = _STORE if wrote else _LOAD
            self.narrow.add(now)
            if step.changed:
                self.changed_by_atomic.update(dict.fromkeys(live.tolist(), now))
        elif access.is_atomic:
            access_kind = _ATOMIC_WRITE if wrote else _ATOMIC_READ
            self.synchronise(now, step, access.sem, wrote, live, clocks, thread_kind)
        elif access.sem == "relaxed":
            access_kind = _ATOMIC_READ
        else:
            access_kind = _STORE if wrote else _LOAD
        if thread_kind == _ALL and wrote:
            self.last_block_write[step.program] = now
            self.confirm_pending(step.program)
        self.compare(now, step, access, access_kind, thread_kind, live, clocks)
        if step.kind == "load" and access.addresses.size == 1:
            self.compare(now, step, access, access_kind, _EACH, live, clocks)
        if step.shared:
            # The compiler gives the result to all threads through shared memory, and all of them
            # wait for it.
            self.add_barrier(now, clocks)

    def compare(
        self,
        now: int,
        step: ScheduledStep,
        access: hooks.MemoryAccess,
        access_kind: int,
        thread_kind: int,
        live: np.ndarray,
        clocks: VectorClocks,
    ) -> None:
        """Compare the step, done by ``thread_kind``, with the earlier steps on the same bytes, and
        keep it for later ones."""
        clock, threads = clocks.program, clocks.threads[min(thread_kind, _ALL)]
        for page, low, high, index in _split_into_pages(live, access.itemsize):
            tracks = self.pages.get(page)
            if tracks is None:
                tracks = self.pages[page] = ({}, {}, {}, {})
            for other_kind in _CONFLICTS[access_kind]:
                # Go by program number: the order of first use would depend on which other tensors
                # lie in the page.
                for (program, thread), track in sorted(tracks[other_kind].items()):
                    latest_ordered = threads[2 * program + min(thread, _ALL)]
                    # Most earlier steps are ordered as a whole, or touch other bytes of the page.
                    if (
                        program == step.program
                        or track.last <= latest_ordered
                        or track.high <= low
                        or high <= track.low
                    ):
                        continue
                    step_numbers = track.steps[index]
                    unordered = step_numbers > clock[program]
                    # a load by each thread is one by the one thread, too
                    if unordered.any() and _EACH not in (thread_kind, thread):
                        self.add_races(page, index, step_numbers, unordered, step, access)
                    unfenced = (step_numbers > latest_ordered) & ~unordered
                    if unfenced.any():
                        known_to_one = clocks.threads[_ONE][2 * program + min(thread, _ALL)]
                        loader = (
                            program
                            if thread == _EACH
                            else step.program
                            if thread_kind == _EACH
                            else None
                        )
                        self.add_missing_barriers(
                            page, index, step_numbers, unfenced, step, known_to_one, loader
                        )
            self.compare_threads(tracks, page, index, step, access_kind, thread_kind, threads)
            track = tracks[access_kind].get((step.program, thread_kind))
            if track is None:
                track = tracks[access_kind][step.program, thread_kind] = _Track()
            track.steps[index] = now
            track.last, track.low, track.high = now, min(track.low, low), max(track.high, high)

    def compare_threads(
        self,
        tracks: _Page,
        page: int,
        index,
        step: ScheduledStep,
        access_kind: int,
        thread_kind: int,
        threads: np.ndarray,
    ) -> None:
        """Compare the step with those of its own program: each thread loads a number for itself,
        and one of them writes it."""
        if thread_kind == _EACH:
            earlier = [
                (other_kind, thread)
                for other_kind in _CONFLICTS[access_kind]
                for thread in (_ONE, _ALL)
            ]
        elif step.changed:
            # An atomic write is no race with a volatile load. The threads of the program may still
            # find different numbers.
            earlier = [(_LOAD, _EACH), (_ATOMIC_READ, _EACH)]
        else:
            return
        for other_kind, thread in earlier:
            track = tracks[other_kind].get((step.program, thread))
            latest_ordered = threads[2 * step.program + min(thread, _ALL)]
            if track is None or track.last <= latest_ordered:
                continue
            step_numbers = track.steps[index]
            unfenced = step_numbers > latest_ordered
            if unfenced.any():
                self.add_numbers(page, index, step_numbers, unfenced, step)

    def add_barrier(self, now: int, clocks: VectorClocks) -> None:
        """Add a barrier at step ``now``: all threads of the program now come after what each of
        them did before."""
        clocks.threads[:] = _merge_threads(now, clocks)

    def synchronise(
        self,
        now: int,
        step: ScheduledStep,
        sem: str,
        wrote: bool,
        live: np.ndarray,
        clocks: VectorClocks,
        thread_kind: int,
    ) -> None:
        """Acquire the clocks released at these addresses, and release this program's clocks there,
        as the memory order ``sem`` says."""
        addresses = live.tolist()
        # Most lanes of a block share one pair of clocks.
        released = list(
            {
                id(pair): pair for pair in map(self.released.get, addresses) if pair is not None
            }.values()
        )
        if sem not in ("relaxed", "release"):
            # If nothing reads the result, no thread waits for the one that does the atomic.
            alone = thread_kind == _ONE and not step.shared
            acquiring = clocks.threads[_ONE] if alone else clocks.threads
            if alone:
                self.acquired_alone[step.program] = step
            for clock, threads in released:
                np.maximum(clocks.program, clock, out=clocks.program)
                np.maximum(acquiring, threads, out=acquiring)
        if wrote and sem not in ("relaxed", "acquire"):
            clocks.program[step.program] = now
            released_threads = (
                clocks.threads[_ONE].copy() if thread_kind == _ONE else _merge_threads(now, clocks)
            )
            released_threads[2 * step.program + _ONE] = now
            program = np.maximum.reduce([clocks.program, *(clock for clock, _ in released)])
            threads = np.maximum.reduce([released_threads, *(threads for _, threads in released)])
            self.released.update(dict.fromkeys(addresses, (program, threads)))
        if step.changed:
            self.changed_by_atomic.update(dict.fromkeys(addresses, now))

    def add_races(
        self,
        page: int,
        index,
        step_numbers: np.ndarray,
        unordered: np.ndarray,
        step: ScheduledStep,
        access: hooks.MemoryAccess,
    ) -> None:
        for earlier, address, where, key in self.find_pairs(
            "race", page, index, step_numbers, unordered, step
        ):
            self.times[key] = self.times.get(key, 0) + 1
            if key not in self.pairs:
                self.pairs[key] = self.describe_race(earlier, step, address, where, access)

    def describe_race(
        self,
        earlier: int,
        step: ScheduledStep,
        address: int,
        where: str,
        access: hooks.MemoryAccess,
    ) -> Race:
        schedule = self.schedule
        earlier_step = schedule.steps[earlier - 1]
        same = earlier_step.kind == step.kind == "store" and _stores_what_is_there(access, address)
        equal = (
            _(
                " Both store the same value there: the result does not show it, and it is a race"
                " all the same."
            )
            if same
            else ""
        )
        narrow = [
            line
            for number, line in ((earlier, earlier_step.line), (len(schedule.steps), step.line))
            if number in self.narrow
        ]
        if narrow:
            equal = _(
                ' The atomic at line {line} has the scope "cta": it orders nothing for other'
                " programs."
            ).format(line=narrow[0])
        message = _(
            "Race on {where}: {first} at line {first_line} ({first_does}) and {second} at line "
            "{second_line} ({second_does}), "
            "with nothing that orders them."
        ).format(
            where=where, first=schedule.name(earlier_step.program), first_line=earlier_step.line,
            first_does=verb(earlier_step),
            second=schedule.name(step.program), second_line=step.line, second_does=verb(step),
        )  # fmt: skip
        return Race(earlier_step, step, address, where, same, 1, message + equal)

    def add_missing_barriers(
        self,
        page: int,
        index,
        step_numbers: np.ndarray,
        unfenced: np.ndarray,
        step: ScheduledStep,
        known_to_one: int,
        loader: int | None,
    ) -> None:
        """Add pairs of two programs. ``known_to_one``: up to that step of the earlier program, the
        one thread of this program comes later.

        ``loader``: the program whose threads load a number each for itself; None if none does.
        """
        for earlier, address, where, key in self.find_pairs(
            "no barrier", page, index, step_numbers, unfenced, step
        ):
            earlier_step = self.schedule.steps[earlier - 1]
            acquire = self.acquired_alone.get(step.program) if earlier <= known_to_one else None
            if acquire is not None:
                line, words = (
                    acquire.line,
                    self.describe_lone_acquire(acquire, earlier_step, step, where),
                )
            else:
                line, words = self.describe_early_release(earlier, earlier_step, step, where)
            load = earlier if earlier_step.program == loader else len(self.schedule.steps)
            self.add_finding(
                key, NoBarrier(earlier_step, step, line, address, where, 1, words), loader, load
            )

    def describe_early_release(
        self, earlier: int, earlier_step: ScheduledStep, step: ScheduledStep, where: str
    ) -> tuple[int, str]:
        """Return the line at which one thread goes on too early, and the finding in words."""
        schedule = self.schedule
        later = (
            s
            for s in schedule.steps[earlier:-1]
            if s.program == earlier_step.program and s.lanes == 1
        )
        release = next((s for s in later if s.kind not in ("load", "store")), None)
        goes_on = _("one of them goes on")
        if release:
            goes_on = _("one of them does the {does} at line {line}").format(
                does=verb(release), line=release.line
            )
        message = _(
            "All threads of {first} {first_does} at line {first_line}, {goes_on}, and no barrier "
            "makes it wait for the others: "
            "{second} at line {second_line} ({second_does} on {where}) can come before that."
        ).format(
            first=schedule.name(earlier_step.program), first_does=earlier_step.kind,
            first_line=earlier_step.line, goes_on=goes_on,
            second=schedule.name(step.program), second_line=step.line, second_does=verb(step),
            where=where,
        )  # fmt: skip
        return (release or earlier_step).line, message

    def describe_lone_acquire(
        self, acquire: ScheduledStep, earlier_step: ScheduledStep, step: ScheduledStep, where: str
    ) -> str:
        schedule = self.schedule
        return _(
            "One thread of {second} does the {does} at line {line}, nothing reads its result, and "
            "no barrier makes the other threads wait for "
            "it: what they do at line {second_line} ({second_does} on {where}) can come before "
            "{first} at line {first_line} ({first_does})."
        ).format(
            second=schedule.name(step.program), does=verb(acquire), line=acquire.line,
            second_line=step.line, second_does=verb(step),
            where=where, first=schedule.name(earlier_step.program), first_line=earlier_step.line,
            first_does=verb(earlier_step),
        )  # fmt: skip

    def add_numbers(
        self, page: int, index, step_numbers: np.ndarray, unfenced: np.ndarray, step: ScheduledStep
    ) -> None:
        """Add pairs of one program: each of its threads loads a number for itself, and one of them
        writes it."""
        for earlier, address, where, key in self.find_pairs(
            "number", page, index, step_numbers, unfenced, step
        ):
            earlier_step = self.schedule.steps[earlier - 1]
            if step.kind == "load":
                load, write, number = step, earlier_step, len(self.schedule.steps)
                words = _(
                    "One thread of {program} writes {where} at line {write_line} ({does}), each of"
                    " its threads loads it at line {load_line}, and no barrier lies between: a"
                    " thread that loads early finds the old value."
                )
            else:
                load, write, number = earlier_step, step, earlier
                words = _(
                    "Each thread of {program} loads {where} at line {load_line}, one of them writes"
                    " it at line {write_line} ({does}), and no barrier lies between: a thread that"
                    " loads late finds the new value."
                )
            words = words.format(
                program=self.schedule.name(step.program),
                where=where,
                write_line=write.line,
                load_line=load.line,
                does=verb(write),
            )
            self.add_finding(
                key,
                NoBarrier(earlier_step, step, load.line, address, where, 1, words),
                step.program,
                number,
            )

    def add_finding(self, key: tuple, finding: NoBarrier, loader: int | None, load: int) -> None:
        """Keep a finding. If it has a load by each thread of ``loader``, at step ``load``, a store
        of all threads has to follow."""
        if loader is None or self.last_block_write.get(loader, 0) > load:
            self.times[key] = self.times.get(key, 0) + 1
            self.pairs.setdefault(key, finding)
        else:
            pending = self.pending.setdefault(loader, {})
            earlier_finding, count = pending.get(key, (finding, 0))
            pending[key] = earlier_finding, count + 1

    def confirm_pending(self, loader: int) -> None:
        """Keep the pending findings of a program: what its threads have loaded now reaches
        memory."""
        for key, (finding, count) in self.pending.pop(loader, {}).items():
            self.times[key] = self.times.get(key, 0) + count
            self.pairs.setdefault(key, finding)

    def find_pairs(
        self,
        kind: str,
        page: int,
        index,
        step_numbers: np.ndarray,
        unordered: np.ndarray,
        step: ScheduledStep,
    ) -> Iterator[tuple[int, int, str, tuple]]:
        """Yield the number of each earlier step that nothing orders before ``step``, the lowest
        byte that they share, its name, and a key.

        Pairs of the same lines, on the same argument, have the same key.
        """
        for earlier in np.unique(step_numbers[unordered]).tolist():
            earlier_step = self.schedule.steps[earlier - 1]
            lane = int(np.flatnonzero(unordered & (step_numbers == earlier))[0])
            offset = index.start + lane if isinstance(index, slice) else int(index[lane])
            address = page * _PAGE + offset
            where = self.schedule.place(address)
            key = (
                kind,
                earlier_step.file,
                earlier_step.line,
                earlier_step.kind,
                step.file,
                step.line,
                step.kind,
                where.split("[")[0],
            )
            yield earlier, address, where, key

    def collect(self) -> tuple[list[Race], list[NoBarrier]]:
        """Return the races and the missing barriers so far: each pair of lines once, with the
        number of times that it was found."""
        counted = [replace(pair, times=self.times[key]) for key, pair in self.pairs.items()]
        return [pair for pair in counted if isinstance(pair, Race)], [
            pair for pair in counted if isinstance(pair, NoBarrier)
        ]

    def find_last_change(self, address: int, size: int) -> ScheduledStep | None:
        """Return the last step that changed one of these bytes: a plain store, or an atomic that
        had an effect."""
        last_number = max(
            (step for at, step in self.changed_by_atomic.items() if address <= at < address + size),
            default=0,
        )
        for page, _low, _high, index in _split_into_pages(np.arange(address, address + size), 1):
            for track in self.pages.get(page, ({}, {}))[_STORE].values():
                last_number = max(last_number, int(track.steps[index].max()))
        return self.schedule.steps[last_number - 1] if last_number else None


def _merge_threads(now: int, clocks: VectorClocks) -> np.ndarray:
    """Return the clock of all threads of a program together, at its step ``now``."""
    merged = clocks.threads.max(axis=0)
    merged[2 * clocks.number : 2 * clocks.number + 2] = now
    return merged


def _split_into_pages(
    live: np.ndarray, itemsize: int
) -> Iterator[tuple[int, int, int, slice | np.ndarray]]:
    """Yield the bytes of ascending addresses page by page: the page, the lowest byte in it, one
    past the highest byte, an index."""
    first_address, end = int(live[0]), int(live[-1]) + itemsize
    page, last_page = first_address // _PAGE, (end - 1) // _PAGE
    if live.size == 1 or (
        end - first_address == live.size * itemsize and (live[1:] - live[:-1] == itemsize).all()
    ):
        for page_number in range(page, last_page + 1):
            low, high = (
                max(first_address - page_number * _PAGE, 0),
                min(end - page_number * _PAGE, _PAGE),
            )
            yield page_number, low, high, slice(low, high)
        return
    touched = (live[:, None] + np.arange(itemsize)).ravel()
    pages = touched // _PAGE
    starts = [0, *(np.flatnonzero(pages[1:] != pages[:-1]) + 1).tolist(), touched.size]
    for start, stop in pairwise(starts):
        page_number = int(pages[start])
        index = touched[start:stop] - page_number * _PAGE
        yield page_number, int(index[0]), int(index[-1]) + 1, index


def _stores_what_is_there(access: hooks.MemoryAccess, address: int) -> bool:
    """Return True if a store writes to the element at ``address`` the bits that it already
    holds."""
    lanes = (
        (access.addresses <= address) & (address < access.addresses + access.itemsize) & access.mask
    )
    if access.values is None or not lanes.any():
        return False
    element = int(access.addresses[lanes][0])
    return (
        ctypes.string_at(element, access.itemsize)
        == np.broadcast_to(access.values, lanes.shape)[lanes][0].tobytes()
    )
