"""A mark explained: what was marked, in files that a teacher can look at and run, and a copy for
the learner without anything of a hidden case.

The file that was marked is kept with the results, and the hidden cases follow from the class's
secret and the learner. So the check is made once more, and its verdict is compared with the one
that was marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import make_private_folder
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise
from course_lib.classroom import case_files, reports
from course_lib.classroom.checking import Request, check_request, grader_version
from course_lib.classroom.grade_class import (
    choose_tier,
    derive_owners_secret,
    find_best_tier,
    find_owner,
    list_names,
    make_verdict_key,
)
from course_lib.classroom.gradebook import Mark, Row, format_points
from course_lib.classroom.journal import Journal
from course_lib.classroom.marking import Marker
from course_lib.classroom.out_folder import (
    FILES,
    JOURNAL,
    open_replacement,
    read_kept_file,
    take_secret,
    write_lines,
)
from course_lib.classroom.own_word import MARKS, find_key, read_words, sort_by_name
from course_lib.classroom.record import RECORD, Attempt, read_record
from course_lib.grading.judging.judge import Judged
from course_lib.grading.report import make_report
from course_lib.grading.verdict import GRADER_FAULT, from_dict

FOLDER, FOR_LEARNER = "shown", "for-the-learner"
ABOUT = "mark.txt"
_SAME = N_(
    "This is byte for byte what was marked: the same file, the same grader and the same hidden"
    " cases, and the check that was made for this folder gave the same verdict."
)


@dataclass(frozen=True)
class ShownMark:
    """The explanation of a mark.

    ``folder`` has the files, ``files`` their names. ``comparison`` says whether all of it is what
    was marked, ``is_same`` is true if it is.
    """

    folder: Path
    files: tuple[str, ...]
    status: str
    comparison: str
    is_same: bool


def show_mark(
    out: Path, learner: str, exercise_id: str, secret_file: Path | None, required_tier: str | None
) -> ShownMark:
    """Write the files that explain the mark of one learner for one exercise.

    Args:
        learner: the name, number or login, as ``marks.csv`` may have it.

    Raises: CourseError if there is no such mark, or nothing was marked; EnvironmentFault if this
    machine cannot check the file.
    """
    if not (out / RECORD).exists():
        raise CourseError(
            _(
                "there are no results of a class in {folder}. Name the folder that `course grade"
                " FOLDER -o OUT` wrote, OUT."
            ).format(folder=paths.shown(out))
        )
    exercise = catalog.get(exercise_id)
    with Journal(out / JOURNAL) as journal:
        record = read_record(out)
        names = list_names(record)
        key = find_key(learner, sort_by_name(names), f"--show {learner} {exercise.id}")
        if exercise.id not in record.asked:
            raise CourseError(
                _("{exercise} was not asked for in {folder}.").format(
                    exercise=exercise.id, folder=paths.shown(out)
                )
            )
        person = record.people[key]
        marker = Marker(record, journal.get, read_words(out / MARKS, names))
        mark, attempt = marker.find_counted(person, exercise)
        row = marker.make_row(person)
    if attempt is None or mark.verdict is None:
        raise CourseError(
            join_sentences(
                _("{learner}, {exercise}: {status}, so there is no case to show.").format(
                    learner=person.learner, exercise=exercise.id, status=_(mark.status)
                ),
                reports.say_what_happened(mark, exercise),
            )
        )
    data = read_kept_file(out, attempt.file)
    if data is None:
        raise CourseError(
            _(
                "the file of {learner} for {exercise} is not in {folder}: the class was graded"
                " before files were kept there, or it was changed. Grade the folder that has it"
                " once more; the verdict stays."
            ).format(learner=person.learner, exercise=exercise.id, folder=paths.shown(out / FILES))
        )
    secret = take_secret(out, secret_file)
    tier = choose_tier(required_tier, find_best_tier())
    mode = runtime.current().mode
    owner = find_owner(person, exercise.id, data)
    cases: list[Judged] = []
    request = Request(
        exercise.id, data, derive_owners_secret(secret, owner), tier, mode, grader_version()
    )
    answer = check_request(request, cases.extend)
    verdict = answer.verdict
    if verdict is None or verdict["status"] == GRADER_FAULT:
        reason = answer.fault if verdict is None else verdict["message"]
        raise EnvironmentFault(
            _("{exercise} of {learner} could not be checked again: {reason}").format(
                exercise=exercise.id, learner=person.learner, reason=reason
            )
        )
    is_same, comparison = compare_verdicts(
        attempt, mark.verdict, verdict, make_verdict_key(exercise.id, data, secret, mode, owner)
    )
    folder = out / FOLDER / f"{reports.name_page(row).removesuffix('.html')}-{exercise.id}"
    shown = next((case for case in cases if case.is_shown), None)
    files = _write(folder, row, exercise, mark, attempt, data, shown, tier, comparison)
    return ShownMark(folder, tuple(files), mark.status, comparison, is_same)


def compare_verdicts(
    attempt: Attempt, marked: dict[str, Any], now: dict[str, Any], key: str
) -> tuple[bool, str]:
    """Return whether the check of today is that of the mark, and say it in words."""
    same_verdict = _take_facts(marked) == _take_facts(now)
    if attempt.key == key and same_verdict:
        return True, _(_SAME)
    differs = (
        _("Its verdict is the same.")
        if same_verdict
        else _("Its verdict differs. Marked: {marked}. Now: {now}.").format(
            marked=_summarize(marked), now=_summarize(now)
        )
    )
    if attempt.version != grader_version():
        return False, join_sentences(
            _(
                "This is NOT what was marked: the grader has changed since (then {before}, now"
                " {now}), and a case may have other numbers. The file is byte for byte the marked"
                " one, and was checked by the grader of today."
            ).format(before=attempt.version, now=grader_version()),
            differs,
            _("To grade the class by the grader of today, give the command of the week again."),
        )
    if attempt.key != key:
        return False, join_sentences(
            _(
                "This is NOT what was marked: the mark was given in the other mode (CPU or GPU) or"
                " to the learner under another name. The file is byte for byte the marked one, and"
                " was checked here."
            ),
            differs,
        )
    return False, join_sentences(
        _(
            "This is NOT what was marked, although file, grader and cases are byte for byte the"
            " same: the result of the file changes from run to run."
        ),
        differs,
    )


def _take_facts(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return what a verdict says without its words, which the language changes, and without the
    isolation, which changes no case."""
    facts = {name: verdict[name] for name in ("status", "cause", "mode", "hidden")}
    facts["cases"] = [(case["name"], case["status"], case["error"]) for case in verdict["cases"]]
    for part, words in (("first", ("case", "words", "inputs")), ("place", ("label",))):
        found = verdict[part]
        facts[part] = found and {name: v for name, v in found.items() if name not in words}
    return facts


def _summarize(verdict: dict[str, Any]) -> str:
    cases = verdict["cases"]
    right = sum(case["status"] == "pass" for case in cases)
    summary = f"{reports.describe_mark_status(verdict['status'])} ({verdict['cause']})"
    if not cases:
        return summary
    return _("{summary}, {right} of {count} cases right").format(
        summary=summary, right=right, count=len(cases)
    )


def _write(
    folder: Path, row: Row, exercise: Exercise, mark: Mark, attempt: Attempt, data: bytes,
    shown: Judged | None, tier: str, comparison: str,
) -> list[str]:  # fmt: skip
    """Write all files, and return the names of those for the teacher."""
    for made in (folder, folder / FOR_LEARNER):
        make_private_folder(made)
    name = f"{exercise.file}.py"
    for copy in (folder / name, folder / FOR_LEARNER / name):
        with open_replacement(copy) as file:
            file.write(data)
    case_files.remove_case(folder)
    case_names = case_files.write_case(folder, exercise, shown, tier) if shown else []
    head = [
        f"{row.learner}, {exercise.id} {exercise.title}:"
        f" {reports.describe_mark_status(mark.status)}, {_describe_points(mark)}",
        *([mark.hand_words] if mark.hand_words else []),
        *([_("Late: {late}").format(late=mark.late)] if mark.late else []),
        _("The file: {name}, SHA-256 {digest}").format(name=name, digest=attempt.file),
    ]
    write_lines(
        folder / ABOUT,
        _join([*head, "", comparison, "", *_describe_verdict(mark, exercise), "",
               *_describe_files(name, shown)]),
    )  # fmt: skip
    write_lines(
        folder / FOR_LEARNER / ABOUT,
        _join([*head, "", reports.describe_mark(mark, exercise), "",
               _("Hidden cases have other shapes and values than those of Check. With the cases"
                 " that everybody has:"), f"    course check {exercise.id} --file {name}"]),
    )  # fmt: skip
    return [ABOUT, name, *case_names, f"{FOR_LEARNER}/"]


def _describe_points(mark: Mark) -> str:
    possible = format_points(mark.possible)
    if mark.points is None:
        return _("no points yet of {possible} points").format(possible=possible)
    return _("{points} of {possible} points").format(
        points=format_points(mark.points), possible=possible
    )


def _describe_verdict(mark: Mark, exercise: Exercise) -> list[str]:
    """Return the lines of the verdict that was marked, as ``course check`` prints them."""
    assert mark.verdict is not None
    report = make_report(from_dict(mark.verdict), exercise)
    place = mark.verdict["place"]
    lines = [report.headline, report.cause, report.case, report.words]
    lines += [f"{name}:{value}" for name, value in report.numbers]
    lines += [reports.quote_place(place)] if place else []
    return [line for line in (*lines, report.question, report.common) if line]


def _describe_files(name: str, shown: Judged | None) -> list[str]:
    if shown is None:
        return [
            _("{name} is the file as it was handed in. The verdict shows no case.").format(
                name=name
            )
        ]
    case = _(
        "The case is in {case}, its inputs in {inputs}, the expected results in {expected}, their"
        " allowed errors in {allowed}."
    )
    result = (
        _("What the file returned is in {got} (float64; NaN where nothing was written).")
        if shown.outputs
        else _("The case did not finish, so there is no result.")
    )
    files = {
        "case": case_files.CASE,
        "inputs": case_files.INPUTS,
        "expected": case_files.EXPECTED,
        "allowed": case_files.ALLOWED,
        "got": case_files.GOT,
    }
    return [
        _("{name} is the file as it was handed in.").format(name=name),
        join_sentences(case, result, _("numpy.load opens them.")).format(**files),
        _(
            "`python {script}` runs the case on the file, `python {script} FILE` on another one."
        ).format(script=case_files.SCRIPT),
        _("{folder}/ may be sent. All else holds a hidden case: keep it to yourself.").format(
            folder=FOR_LEARNER
        ),
    ]


def _join(lines: list[str]) -> list[str]:
    return [f"{line}\n" for line in lines]
