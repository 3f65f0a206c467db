"""The learners' pages in a form that can be sent: one zip with the names that Moodle and Canvas
take back, and a table of learner, address and file.

Both systems find the submission that a page belongs to by the name of the file, which begins as the
name in the download does. So the zip has the learners of the last run: Moodle numbers a person anew
in each assignment, and Canvas numbers each file.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

from course_lib.classroom import gradebook, reports
from course_lib.classroom.gradebook import Row
from course_lib.classroom.out_folder import open_replacement, write_lines

ZIP, TABLE = "feedback.zip", "feedback.csv"
_ANY_DAY = (1980, 1, 1, 0, 0, 0)  # equal pages make an equal zip


def write_feedback(out: Path, rows: Iterable[Row], present: Collection[str]) -> None:
    """Write ``feedback.zip`` and ``feedback.csv`` from the pages in ``out``.

    Args:
        rows: the rows of all learners.
        present: the keys of the learners of this run, whose pages are in the zip.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    table = []
    with (
        open_replacement(out / ZIP) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for row in rows:
            page = reports.name_page(row)
            packed_name = f"{row.feedback_prefix}{page}" if row.key in present else ""
            if packed_name:
                member = zipfile.ZipInfo(packed_name, _ANY_DAY)
                member.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(member, (out / reports.FOLDER / page).read_bytes())
            table.append((row.learner, row.address, f"{reports.FOLDER}/{page}", packed_name))
    write_lines(out / TABLE, gradebook.write_feedback_table(table))
