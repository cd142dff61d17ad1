#!/usr/bin/env bash
# Builds the native library under AddressSanitizer and UndefinedBehaviorSanitizer and makes hostile calls of the Python API.
#
#   tests/fuzz/api.sh [calls] [seed]      CXX chooses the compiler, PYTHON a Python with gatelight's dependencies
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
csrc=$here/../../src/gatelight/csrc
cxx=${CXX:-c++}
python=${PYTHON:-python3}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

common=(-std=c++17 -O1 -g1 -fPIC -fno-omit-frame-pointer -fno-math-errno -ffp-contract=fast -Wno-psabi -Wno-unknown-pragmas -I "$csrc"
  -fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow -fno-sanitize-recover=all)
paths=(base)
if [[ $("$cxx" -dumpmachine) == x86_64* ]]; then
  paths+=(avx2 avx512)
  common+=(-DGL_HAVE_X86)
fi
declare -A flags=([base]="" [avx2]="-mavx2 -mfma -mf16c -mbmi2" [avx512]="-mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mf16c -mbmi2")

compile() {
  local name=$1
  shift
  "$cxx" "${common[@]}" "$@" -c "$csrc/$name.cpp" -o "$build/$name.o"
}
for path in "${paths[@]}"; do
  # Two at a time: the kernels take a gigabyte each.
  # shellcheck disable=SC2086
  compile "kernels_$path" ${flags[$path]} &
  # shellcheck disable=SC2086
  compile "conv_$path" -DGL_FEW_TREES ${flags[$path]} &
  wait -n
  wait -n
  # shellcheck disable=SC2086
  compile "engine_$path" ${flags[$path]}
done
for name in api clusters cluster_pass conv_api dispatch images memory pool \
  engine_api engine_code engine_encoder engine_lower engine_merge engine_schedule engine_sequence; do
  compile "$name"
done
"$cxx" "${common[@]}" -shared "$build"/*.o -pthread -o "$build/libgatelight.so"

# Python's own allocator would hide the ends of its blocks, and what it leaves behind is none of the library's business.
said=$(PYTHONPATH="$here/../../src" PYTHONMALLOC=malloc GATELIGHT_NATIVE_LIBRARY="$build/libgatelight.so" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  LD_PRELOAD="$("$cxx" -print-file-name=libasan.so) $("$cxx" -print-file-name=libstdc++.so)" \
  "$python" "$here/api.py" "${1:-20000}" "${2:-0}")
echo "api: $said"
