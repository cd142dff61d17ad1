#!/usr/bin/env bash
# Builds the kernels with a small driver under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer,
# and runs random stacks, chains of trees and images against plain loops in double precision. Checks of UBSan that repeat
# AddressSanitizer's at four times the build time are left out. Segments of two layers and clusters of 16 gates make the
# driver's small stacks take the ways of deep and of wide ones.
#
#   tests/ops/sanitize.sh [cases]      CXX chooses the compiler
set -euo pipefail
cases=${1:-20}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
csrc=$here/../../src/gatelight/csrc
cxx=${CXX:-c++}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

common=(-std=c++17 -O1 -g1 -fno-omit-frame-pointer -fno-math-errno -ffp-contract=fast -Wno-psabi -DGL_SEGMENT=2 -DGL_CLUSTER=16 -I "$csrc")
paths=(base)
if [[ $("$cxx" -dumpmachine) == x86_64* ]]; then
  paths+=(avx2 avx512)
  common+=(-DGL_HAVE_X86)
fi
declare -A flags=(
  [base]=""
  [avx2]="-mavx2 -mfma -mbmi2"
  [avx512]="-mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mbmi2"
)

run() {
  local name=$1 sanitize=$2 objects=() pids=()
  for path in "${paths[@]}"; do
    # shellcheck disable=SC2086
    "$cxx" "${common[@]}" $sanitize ${flags[$path]} -c "$csrc/kernels_$path.cpp" -o "$build/$name-$path.o" &
    pids+=($!)
    # shellcheck disable=SC2086
    "$cxx" "${common[@]}" $sanitize -DGL_FEW_TREES ${flags[$path]} -c "$csrc/conv_$path.cpp" -o "$build/$name-conv-$path.o" &
    pids+=($!)
    objects+=("$build/$name-$path.o" "$build/$name-conv-$path.o")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  # shellcheck disable=SC2086
  for driver in driver conv_driver; do
    # shellcheck disable=SC2086
    "$cxx" "${common[@]}" $sanitize "$csrc"/{api,clusters,cluster_pass,conv_api,dispatch,memory,pool}.cpp "$here/$driver.cpp" "${objects[@]}" \
      -pthread -o "$build/$name-$driver"
    # Not inside echo, which would hide a failure.
    said=$("$build/$name-$driver" "$cases")
    echo "$name: $said"
  done
  # shellcheck disable=SC2086
  "$cxx" "${common[@]}" $sanitize "$csrc/images.cpp" "$here/images_driver.cpp" -o "$build/$name-images"
  said=$("$build/$name-images" "$cases")
  echo "$name: $said"
}

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
run address "-fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow -fno-sanitize-recover=all"
run thread "-fsanitize=thread"
