#!/usr/bin/env bash
# Builds the native library under AddressSanitizer and UndefinedBehaviorSanitizer and makes hostile calls of the Python API.
#
#   tests/fuzz/api.sh [calls] [seed]      CXX chooses the compiler, PYTHON a Python with gatelight's dependencies
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cxx=${CXX:-c++}
python=${PYTHON:-python3}
library=$("$here/../sanitized.sh" address gatelight_native)/libgatelight_native.so

# Python's own allocator would hide the ends of its blocks, and what it leaves behind is none of the library's business.
said=$(PYTHONPATH="$here/../../src" PYTHONMALLOC=malloc GATELIGHT_NATIVE_LIBRARY="$library" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  LD_PRELOAD="$("$cxx" -print-file-name=libasan.so) $("$cxx" -print-file-name=libstdc++.so)" \
  "$python" "$here/api.py" "${1:-20000}" "${2:-0}")
echo "api: $said"
