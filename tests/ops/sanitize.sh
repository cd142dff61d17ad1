#!/usr/bin/env bash
# Builds the library and small drivers under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer, and
# runs random stacks, chains of trees and images against plain loops in double precision. CMakeLists.txt has the files
# and flags (GATELIGHT_SANITIZE); what is built stays in build/sanitize.
#
#   tests/ops/sanitize.sh [cases]      CXX chooses the compiler
set -euo pipefail
cases=${1:-20}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
for sanitizer in address thread; do
  build=$("$root/tests/sanitized.sh" "$sanitizer" driver conv_driver images_driver)
  for driver in driver conv_driver images_driver; do
    # Not inside echo, which would hide a failure.
    said=$("$build/$driver" "$cases")
    echo "$sanitizer: $said"
  done
done
