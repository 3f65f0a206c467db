#!/usr/bin/env bash
# Install the course from the wheel beside this file into venv/, with PyTorch's CPU build and the pinned versions.
# uv takes a Python of this machine that is new enough, else it fetches one. Ubuntu 22.04 has 3.10, and with its python3.11, a release
# candidate, Triton's compiler crashes.
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv tools
tools/bin/python -m pip install --quiet --constraint constraints.txt uv
tools/bin/uv venv --quiet --python '>=3.11.1' venv
install=(tools/bin/uv pip install --quiet --python venv/bin/python --constraints constraints.txt)
"${install[@]}" --torch-backend cpu --no-deps "$(grep '^torch==' constraints.txt)"
"${install[@]}" --compile-bytecode "$(echo ./norm_kernels_course-*.whl)[lab]"
