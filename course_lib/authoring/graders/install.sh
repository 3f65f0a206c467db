#!/usr/bin/env bash
# Install the course from the wheel beside this file into venv/, with PyTorch's CPU build and the pinned versions. $1 is the Python to use.
set -euo pipefail
cd "$(dirname "$0")"
"$1" -m venv venv
venv/bin/python -m pip install --quiet --constraint constraints.txt uv
install=(venv/bin/python -m uv pip install --quiet --python venv/bin/python --constraints constraints.txt)
"${install[@]}" --torch-backend cpu --no-deps "$(grep '^torch==' constraints.txt)"
"${install[@]}" --compile-bytecode "$(echo ./norm_kernels_course-*.whl)[lab]"
