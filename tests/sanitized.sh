#!/usr/bin/env bash
# Builds targets of CMakeLists.txt under a sanitizer and prints the folder they are in.
#
#   tests/sanitized.sh address|thread targets...      CXX chooses the compiler, JOBS how many files at a time
set -euo pipefail
sanitizer=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/sanitize/$sanitizer
{
  cmake -S "$root" -B "$build" -DGATELIGHT_SANITIZE="$sanitizer"
  # Two at a time: the kernels take a gigabyte each.
  cmake --build "$build" --parallel "${JOBS:-2}" --target "$@"
} >&2
echo "$build"
