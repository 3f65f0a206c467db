"""What the kinds share whose entry points are functions."""

from __future__ import annotations

import ast

from course_lib.base.translation import gettext as _
from course_lib.grading.kind import Kind
from course_lib.grading.submission import needed, shortcuts
from course_lib.launching.faults import Raised


class FunctionKind(Kind):
    """A kind whose entry points are functions that the course calls."""

    def describe_needed_imports(self) -> str:
        return _("This exercise needs only `import torch`; remove the line.")

    def find_entry_points(
        self, tree: ast.Module, file: str, entry_points: tuple[str, ...]
    ) -> str | None:
        return needed.find_functions(tree, file, entry_points)

    def check_code(self, tree: ast.Module, text: str, forbidden: dict[str, str], file: str) -> None:
        shortcuts.check(tree, shortcuts.Shortcuts(forbidden), file)

    def find_cause_of_exception(self, raised: Raised) -> str:
        from course_lib.grading.judging import diagnosis  # a confined process judges nothing

        return diagnosis.find_refusal(raised) or "function_raised"
