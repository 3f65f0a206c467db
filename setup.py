"""Put into a wheel what a course folder is made of. A checkout has it beside ``course_lib``; an installed package, inside."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (  # MANIFEST.in names the same for the source distribution
    "AGENTS.md", "constraints.txt", "docs/commands.md", "docs/cpu-mode.md", "docs/kernels.md", "docs/security.md", "notebooks/*.ipynb",
    "notebooks/images/*", "notebooks/source/*.py", "solutions/*.py", "tools/bootstrap.py", "tools/installer.py", "tools/machine.py", "tools/jupyter/**/*.json",
)  # fmt: skip


class BuildWithCourse(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        shipped = Path(self.build_lib, "course_lib", "shipped")
        shutil.rmtree(shipped, ignore_errors=True)  # what an earlier build left
        for pattern in SHIPPED:
            for file in Path().glob(pattern):
                (shipped / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, shipped / file)


setup(cmdclass={"build_py": BuildWithCourse})
