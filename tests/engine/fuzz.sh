#!/usr/bin/env bash
# Builds the engine with a small driver under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer,
# and runs random and mutated circuits against plain loops. Then mutated circuit files are loaded and run from Python with
# the library built in the first way.
#
#   tests/engine/fuzz.sh [cases] [files]      CXX chooses the compiler, PYTHON a Python with numpy and safetensors
set -euo pipefail
cases=${1:-2000}
files=${2:-$cases}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cxx=${CXX:-c++}
python=${PYTHON:-python3}

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
declare -A count=([address]=$cases [thread]=$((cases / 10)))
for sanitizer in address thread; do
  build=$("$here/../sanitized.sh" "$sanitizer" fuzz)
  # Not inside echo, which would hide a failure.
  said=$("$build/fuzz" "${count[$sanitizer]}")
  echo "$sanitizer: $said"
done

# Python's own allocator would hide the ends of its blocks, and what it leaves behind is none of the library's business.
library=$("$here/../sanitized.sh" address gatelight_native)/libgatelight_native.so
said=$(PYTHONPATH="$here/../../src" PYTHONMALLOC=malloc GATELIGHT_NATIVE_LIBRARY="$library" \
  ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$("$cxx" -print-file-name=libasan.so)" \
  "$python" -W error "$here/fuzz_files.py" "$files")
echo "files: $said"
