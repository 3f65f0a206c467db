"""Observe the memory accesses of a launch in the interpreter."""

from __future__ import annotations

import bisect
import math

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.grading.cases.plan import CaseLaunch
from course_lib.launching.faults import FaultKind, Misuse, describe_line, find_worst

_FEW_PROGRAMS = 3  # with fewer programs, one of them may rightly do all the work
# with fewer programs, one that takes several parts may rightly do nearly all the work
_SOME_PROGRAMS = 5
_NEARLY_ALL = 0.9  # as a part of all elements


# names of counts
MOVED, MEETINGS = "moved", "meetings"


def name_reads(tensor: str) -> str:
    """Return the name of the count of the elements that are read of a tensor."""
    return f"reads of {tensor}"


class Watch:
    """Follows a launch through memory: writes to inputs, how often elements are read and by which
    program, and outputs read before they are written, or in place after it.

    A masked lane accesses nothing. An atomic reads and writes, also one that adds 0. ``written`` is
    the first write to an input.
    """

    def __init__(self, case: CaseLaunch, regions: list, line_of_kernel):
        import numpy as np

        self.allowed, self.by_lane = case.reads, case.reads_by_lane
        self.spread, self.line_of_kernel = case.spread, line_of_kernel
        self.programs = math.prod(case.grid)
        self.empty_allowed: int | None = case.empty_loads
        self.loads = {True: 0, False: 0}  # loads with an active lane, and loads without one
        self.regions = sorted(
            (region for region in regions if region.elements), key=lambda region: region.low
        )
        self.lows = [region.low for region in self.regions]
        self.inputs = {t.name for t in case.tensors if not t.is_output and not t.scratch}
        self.in_place = {t.name for t in case.tensors if t.in_place}
        near = {t.name for t in case.tensors if t.is_output and not t.far}
        self.stored = {  # output -> for each element, whether it was stored
            region.name: np.zeros((region.high - region.low) // region.itemsize + 1, bool)
            for region in self.regions
            if region.name in near
        }
        # tensor -> line -> elements read
        self.read: dict[str, dict[int | None, int]] = {name: {} for name in self.allowed}
        # tensor -> program -> lanes
        self.shares: dict[str, dict[tuple, int]] = {name: {} for name in self.spread}
        # what a kernel has done, by the names of ``name_reads`` and below; only if it is asked for
        self.counts: dict[str, int] | None = {} if case.counted else None
        self.matrices = {t.name for t in case.tensors if len(t.shape) == 2}
        self.meetings: dict[int | None, int] = {}  # line -> reductions across lanes
        # A sampled launch runs some of the programs.
        rows = len(case.sample) or case.tensors[0].shape[0]
        self.most_meetings, self.rows = case.meetings, rows
        self.written: Misuse | None = None
        self.untimely: Misuse | None = None

    def __call__(self, access) -> None:
        live = access.live()
        if access.kind == "load":
            self.loads[bool(live.size)] += 1
        region = self.find_region(live)
        if region is None:
            return
        name, reads, writes = region.name, access.kind != "store", access.kind != "load"
        if writes and self.written is None and name in self.inputs:
            line = self.find_line()
            words = _("{name} is an input and is written{line}")
            if reads:
                words = _(
                    "{name} is an input and is written{line} by an atomic, which stores also where"
                    " it adds 0"
                )
            self.written = Misuse(
                FaultKind.INPUT, words.format(name=name, line=describe_line(line)), name, line
            )
        if reads and name in self.read:
            lines, line = self.read[name], self.find_line()
            lines[line] = lines.get(line, 0) + (
                live.size if self.by_lane else _count_elements(live)
            )
        if name in self.shares and (reads if name in self.inputs else writes):
            shares = self.shares[name]
            shares[access.program] = shares.get(access.program, 0) + live.size
        if name in self.stored:
            self.follow_stores(region, live, reads, writes)

        if self.counts is not None and name in self.matrices:
            elements = _count_elements(live)
            self.add(MOVED, elements * access.itemsize)
            if reads:
                self.add(name_reads(name), elements)

    def add(self, name: str, number: int) -> None:
        assert self.counts is not None
        self.counts[name] = self.counts.get(name, 0) + number

    def meet(self) -> None:
        """Follow a reduction across lanes."""
        if self.counts is not None:
            self.add(MEETINGS, 1)
        if self.most_meetings is not None:
            line = self.find_line()
            self.meetings[line] = self.meetings.get(line, 0) + 1

    def find_region(self, live):
        """Return the tensor in which the first active lane lies; None if there is no such lane, or
        it lies in no tensor."""
        at = bisect.bisect_right(self.lows, int(live[0])) - 1 if live.size else -1
        return self.regions[at] if at >= 0 and int(live[0]) <= self.regions[at].high else None

    def follow_stores(self, region, live, reads: bool, writes: bool) -> None:
        """Remember which elements of an output are stored to, and the first read at the wrong time:
        before that, or in place after it."""
        stored, elements = self.stored[region.name], (live - region.low) // region.itemsize
        in_place = region.name in self.in_place
        if (
            reads
            and self.untimely is None
            and (stored[elements].any() if in_place else not stored[elements].all())
        ):
            line = self.find_line()
            kind = FaultKind.UNWRITTEN
            words = _("{name} is read{line} before anything is stored there")
            if in_place:
                kind = FaultKind.READ_BACK
                words = _("{name} is read{line} after it was overwritten")
            self.untimely = Misuse(
                kind, words.format(name=region.name, line=describe_line(line)), region.name, line
            )
        if writes:
            stored[elements] = True

    def find_line(self) -> int | None:
        _file, line = self.line_of_kernel() or (None, None)
        return line

    def find_misuse(self) -> Misuse | None:
        """Return the worst misuse that was seen."""
        return find_worst(
            self.written,
            self.find_excess(),
            self.find_meetings(),
            self.find_empty_turns(),
            self.find_lone_program(),
            self.untimely,
        )

    def find_empty_turns(self) -> Misuse | None:
        """Find a loop that goes on after the last tile: in these steps all lanes of every load are
        masked off, which no result shows."""
        if self.empty_allowed is None or self.loads[False] <= self.loads[True] + self.empty_allowed:
            return None
        words = _(
            "{empty} of {loads} loads have no lane at all: the loop goes on where no tile is left"
        )
        return Misuse(
            FaultKind.EMPTY, words.format(empty=self.loads[False], loads=sum(self.loads.values()))
        )

    def find_excess(self) -> Misuse | None:
        """Find the first tensor that was read too often.

        One element per row is free, because some algorithms read the first one in advance; but not
        if the tensor need not be read at all.
        """
        for region in self.regions:
            if region.name not in self.allowed:
                continue
            lines, allowed = self.read[region.name], self.allowed[region.name]
            total = sum(lines.values())
            if total <= allowed * region.elements + (region.shape[0] if allowed else 0):
                continue
            at = sorted(line for line in lines if line is not None)
            where = _(", at lines {lines}") if len(at) > 1 else _(", at line {lines}") if at else ""
            where = where.format(lines=list_words(at))
            asked = _("the exercise asks for {count} times").format(count=allowed)
            asked = {0: _("it need not be read at all"), 1: _("the exercise asks for once")}.get(
                allowed, asked
            )
            often = f"{total / region.elements:.1f}"
            words = (
                _("{name} is read once{where}; {asked}")
                if often == "1.0"
                else _("{name} is read {often} times{where}; {asked}")
            )
            words = words.format(name=region.name, often=often, where=where, asked=asked)
            return Misuse(FaultKind.READS, words, region.name, at[-1] if at else None)
        return None

    def find_meetings(self) -> Misuse | None:
        """Find a row whose lanes meet more often than the exercise allows."""
        total = sum(self.meetings.values())
        if self.most_meetings is None or total <= self.most_meetings * self.rows:
            return None
        line = max(self.meetings, key=self.meetings.__getitem__)
        words = _("the lanes of a row meet {count} times{line}; the exercise allows {most}")
        words = words.format(
            count=f"{total / self.rows:g}", line=describe_line(line), most=self.most_meetings
        )
        return Misuse(FaultKind.MEETINGS, words, "", line)

    def find_lone_program(self) -> Misuse | None:
        """Find the first tensor on which one program does all, or nearly all, of the work that
        several programs should share."""
        for name, shares in self.shares.items():
            total, program = sum(shares.values()), max(shares, key=shares.__getitem__, default=None)
            limit = _NEARLY_ALL * total if self.spread[name] >= _SOME_PROGRAMS else total
            if program is None or self.spread[name] < _FEW_PROGRAMS or shares[program] < limit:
                continue
            number = program if any(program[1:]) else program[0]
            words = _(
                "program {number} of {programs} does {share}; the exercise gives every program a"
                " part of its own"
            )
            if shares[program] == total:
                share = (
                    _("all the loads of {name}")
                    if name in self.inputs
                    else _("all the stores of {name}")
                )
            else:
                share = (
                    _("nearly all the loads of {name}")
                    if name in self.inputs
                    else _("nearly all the stores of {name}")
                )
            words = words.format(
                number=number, programs=self.programs, share=share.format(name=name)
            )
            return Misuse(FaultKind.ALONE, words, name)
        return None


def _count_elements(live) -> int:
    """Count the elements that one load moves: lanes that load the same element move it once, such
    as padded lanes on the last column."""
    import numpy as np

    return live.size if (live[1:] > live[:-1]).all() else np.unique(live).size
