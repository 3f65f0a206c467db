"""Read PTX and SASS: the width of memory accesses, and the line of the kernel that each instruction comes from."""

from __future__ import annotations

import os
import re
from collections import Counter


def at_call_sites(ptx: str, file: str) -> str:
    """Return the PTX with the place of inlined code (a ``tl.sum``) replaced by the place in ``file`` that calls it.

    ptxas keeps only the innermost place, so nothing in SASS would lead from a reduction back to the kernel. Only ``.loc``
    directives change, and they make no instructions.
    """
    numbered = re.search(rf'^\s*\.file\s+(\d+)\s[^\n]*{re.escape(file)}"', ptx, re.MULTILINE)
    if numbered is None:
        return ptx
    inlined = re.compile(rf"^(\s*)\.loc\s[^\n]*?@\[ {re.escape(file)}:(\d+):(\d+)[^\n]*", re.MULTILINE)
    return inlined.sub(rf"\g<1>.loc\t{numbered[1]} \2 \3", ptx)


_ACCESS_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


def widths(sass: str, instructions: str) -> dict[int, int]:
    """Count the global loads or stores by the bytes that each moves per thread. A loop's body counts once."""
    counts = Counter()
    for modifiers in re.findall(rf"^\s*(?:@!?U?P\w+\s+)?(?:{instructions})((?:\.\w+)*)\s", sass, re.MULTILINE):
        bits = [_ACCESS_BITS[part] for part in modifiers.split(".") if part in _ACCESS_BITS]
        counts[(bits[-1] if bits else 32) // 8] += 1
    return dict(sorted(counts.items()))


def ptx_lines(ptx: str, file: str) -> dict[int, list[int]]:
    """Return for each line of ``file`` the lines of PTX made from it. Inlined code belongs to the innermost call in ``file``."""
    lines: dict[int, list[int]] = {}
    source = None
    for number, text in enumerate(ptx.splitlines(), 1):
        stripped = text.strip()
        if stripped.startswith(".loc"):
            here = re.search(rf"{re.escape(file)}:(\d+):", text)
            source = int(here[1]) if here else None
        elif stripped.startswith((".section", "}")):
            source = None
        elif source and stripped.endswith(";"):
            lines.setdefault(source, []).append(number)
    return lines


def sass_lines(listing: str, file: str) -> tuple[str, dict[int, list[int]]]:
    """Return the instructions and labels of an nvdisasm listing, and for each line of ``file`` the lines among them made from it."""
    kept: list[str] = []
    lines: dict[int, list[int]] = {}
    source = None
    for text in listing.splitlines():
        stripped = text.strip()
        if stripped.startswith("//## File"):
            here = re.match(r'//## File "([^"]*)", line (\d+)', stripped)
            source = int(here[2]) if here and os.path.basename(here[1]) == file else None
        elif instruction := re.match(r"/\*[0-9a-f]+\*/\s+(.*;)", stripped):
            kept.append(f"        {instruction[1]}")
            if source:
                lines.setdefault(source, []).append(len(kept))
        elif re.match(r"\.L_x_\d+:", stripped):
            kept.append(stripped)
    return "\n".join(kept) + "\n", lines
