#!/usr/bin/env bash
# Gradescope runs this once, when the image of the assignment is built.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y python3-venv
bash "$(dirname "$0")/install.sh"
