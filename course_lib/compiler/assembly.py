"""Read PTX and SASS: the width of memory accesses, and the line of the kernel that each instruction
comes from."""

from __future__ import annotations

import os
import re
from collections import Counter

Place = tuple[str, ...]  # the number of a file, a line, a column, as PTX writes them
_LOC = re.compile(
    r"^(\s*)\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^\n]*?, inlined_at (\d+) (\d+)"
    r" (\d+))?([^\n]*)",
    re.MULTILINE,
)
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)


def _find_number(ptx: str, file: str) -> str | None:
    """Return the number that the PTX gives to ``file``."""
    numbered = re.search(rf'^\s*\.file\s+(\d+)\s[^\n]*{re.escape(file)}"', ptx, re.MULTILINE)
    return numbered and numbered[1]


def _hold_place(assembly: re.Match[str]) -> str:
    """Give all lines of one load or store its place. From 3.8 on Triton counts the lines of such a
    text as lines of the kernel."""
    first_place = _LOC.search(assembly[0])
    return _LOC.sub(lambda _: first_place[0], assembly[0]) if first_place else assembly[0]


def at_call_sites(ptx: str, file: str) -> str:
    """Return the PTX with the place of inlined code (a ``tl.sum``) replaced by the place in
    ``file`` that calls it.

    ptxas keeps only the innermost place, so nothing in SASS would lead from a reduction back to the
    kernel. Only ``.loc`` directives change, and they make no instructions. Triton writes the calls
    in a comment, from 3.8 on as ``inlined_at``.
    """
    number = _find_number(ptx, file)
    if number is None:
        return ptx
    ptx = _ASSEMBLY.sub(_hold_place, ptx)
    inlined = re.compile(rf"@\[ {re.escape(file)}:(\d+):(\d+)")
    # from a place of inlined code to the place in file that calls it
    calls: dict[Place, Place] = {}

    def move(loc: re.Match[str]) -> str:
        place, caller = loc.group(2, 3, 4), loc.group(5, 6, 7)
        if caller[0] is not None:
            call = caller if caller[0] == number else calls.get(caller, caller)
            calls[place] = call
        elif (call_site := inlined.search(loc[8])) is not None:
            call = (number, call_site[1], call_site[2])
        else:
            return loc[0]
        return f"{loc[1]}.loc\t{' '.join(call)}" if call[0] == number else loc[0]

    return _LOC.sub(move, ptx)


_ACCESS_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


def widths(sass: str, instructions: str) -> dict[int, int]:
    """Count the global loads or stores by the bytes that each moves per thread. A loop's body
    counts once."""
    counts = Counter()
    for modifiers in re.findall(
        rf"^\s*(?:@!?U?P\w+\s+)?(?:{instructions})((?:\.\w+)*)\s", sass, re.MULTILINE
    ):
        bits = [_ACCESS_BITS[part] for part in modifiers.split(".") if part in _ACCESS_BITS]
        counts[(bits[-1] if bits else 32) // 8] += 1
    return dict(sorted(counts.items()))


def ptx_lines(ptx: str, file: str) -> dict[int, list[int]]:
    """Return for each line of ``file`` the lines of PTX made from it. Inlined code belongs to the
    innermost call in ``file``."""
    lines: dict[int, list[int]] = {}
    number, source = _find_number(ptx, file), None
    for count, text in enumerate(at_call_sites(ptx, file).splitlines(), 1):
        stripped = text.strip()
        if loc := _LOC.match(text):
            source = int(loc[3]) if loc[2] == number else None
        elif stripped.startswith((".section", "}")):
            source = None
        elif source and stripped.endswith(";"):
            lines.setdefault(source, []).append(count)
    return lines


def sass_lines(listing: str, file: str) -> tuple[str, dict[int, list[int]]]:
    """Return the instructions and labels of an nvdisasm listing, and for each line of ``file`` the
    lines among them made from it."""
    instructions: list[str] = []
    lines: dict[int, list[int]] = {}
    source = None
    for text in listing.splitlines():
        stripped = text.strip()
        if stripped.startswith("//## File"):
            file_place = re.match(r'//## File "([^"]*)", line (\d+)', stripped)
            source = (
                int(file_place[2])
                if file_place and os.path.basename(file_place[1]) == file
                else None
            )
        elif instruction := re.match(r"/\*[0-9a-f]+\*/\s+(.*;)", stripped):
            instructions.append(f"        {instruction[1]}")
            if source:
                lines.setdefault(source, []).append(len(instructions))
        elif re.match(r"\.L_x_\d+:", stripped):
            instructions.append(stripped)
    return "\n".join(instructions) + "\n", lines
