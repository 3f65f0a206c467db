"""A search over all launches with an own estimate of the registers: the most bytes under way, then the fewest warps."""

from dataclasses import dataclass
from itertools import product


@dataclass
class Candidate:
    rows: int
    block: int
    warps: int

    def numbers(self):
        return self.rows * self.block / (32 * self.warps)

    def programs(self):
        registers = 24 + 1.7 * self.numbers()
        return min(32, 64 // self.warps, int(65536 // (32 * self.warps * registers)))


def choose_launch(M, N, itemsize):
    block = 1 << (N - 1).bit_length()
    rows = [r for r in (1, 2, 4, 8, 16, 32) if M >= 132 * r] or [1]
    fitting = [c for r, w in product(rows, (1, 2, 4, 8, 16)) if 8 <= (c := Candidate(r, block, w)).numbers() <= 32]
    if not fitting:
        return 1, block, max(1, block // 512)
    best = max(fitting, key=lambda c: (c.programs() * c.rows, -c.warps))
    return best.rows, best.block, best.warps
