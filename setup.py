"""Put into a wheel what a course folder is made of, and write the package's page out of README.

A checkout has the files of a course folder beside ``course_lib``; an installed package, inside.
"""

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (  # MANIFEST.in names the same for the source distribution
    "AGENTS.md", "constraints.txt", "docs/commands.md", "docs/cpu-mode.md",
    "docs/kernel-trials.md", "docs/kernels.md", "docs/security.md", "notebooks/*.ipynb",
    "notebooks/images/*", "notebooks/source/*.py", "solutions/*.py", "tools/bootstrap.py",
    "tools/installer.py", "tools/machine.py", "tools/translation.py", "tools/jupyter/**/*.json",
)  # fmt: skip


class BuildWithCourse(build_py):
    def run(self):
        built = Path(self.build_lib, "course_lib")
        if not self.editable_mode:
            shutil.rmtree(built, ignore_errors=True)  # what an earlier build left
        super().run()
        if self.editable_mode:
            return
        shipped = built / "shipped"
        for pattern in SHIPPED:
            for file in Path().glob(pattern):
                (shipped / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, shipped / file)


def write_page(readme: str, repository: str) -> str:
    """Return README for the index of packages, where a relative link leads nowhere: such a link
    leads to ``repository``.

    If ``repository`` is empty, the words of a link stay, and pictures go with the
    caption in italics below them.
    """
    file = r"(?!https?:|#)"  # where a link to a file of the repository begins
    if not repository:
        return re.sub(
            rf"(?<!!)\[([^\]]+)\]\({file}[^)]+\)",
            r"\1",
            re.sub(r"(?s)<picture>.*?</picture>\s*(\*[^*\n]+\*\s*)?", "", readme),
        )
    page = re.sub(rf"\]\({file}([^)]+)\)", rf"]({repository}/blob/main/\1)", readme)
    return re.sub(rf'\b(src|srcset)="{file}([^"]+)"', rf'\1="{repository}/raw/main/\2"', page)


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    setup(
        cmdclass={"build_py": BuildWithCourse},
        long_description=write_page(
            Path("README.md").read_text(encoding="utf-8"),
            project.get("urls", {}).get("Repository", "").rstrip("/"),
        ),
        long_description_content_type="text/markdown",
    )
