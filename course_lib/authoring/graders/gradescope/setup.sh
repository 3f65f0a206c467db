#!/usr/bin/env bash
# Gradescope runs this once, when the image of the assignment is built. Ubuntu 22.04 has Python 3.10, and 3.11 beside it.
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive
apt-get update
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python=python3.11
fi
apt-get install -y "$python" "$python-venv"
bash install.sh "$python"
