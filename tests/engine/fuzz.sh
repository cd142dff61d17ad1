#!/usr/bin/env bash
# Builds the engine with a small driver under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer,
# and runs random and mutated circuits against plain loops. Then mutated circuit files are loaded and run from Python with
# a library built in the first way.
#
#   tests/engine/fuzz.sh [cases] [files]      CXX chooses the compiler, PYTHON a Python with numpy and safetensors
set -euo pipefail
cases=${1:-2000}
files=${2:-$cases}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
csrc=$here/../../src/gatelight/csrc
cxx=${CXX:-c++}
python=${PYTHON:-python3}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

common=(-std=c++17 -O1 -g -fPIC -fno-omit-frame-pointer -Wno-psabi -Wno-unknown-pragmas -I "$csrc")
paths=(base)
if [[ $("$cxx" -dumpmachine) == x86_64* ]]; then
  paths+=(avx2 avx512)
  common+=(-DGL_HAVE_X86)
fi
declare -A flags=([base]="" [avx2]="-mavx2 -mfma -mbmi2" [avx512]="-mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mbmi2")

# The training kernels only have to be there.
for path in "${paths[@]}"; do
  # shellcheck disable=SC2086
  "$cxx" "${common[@]}" -O0 -g0 ${flags[$path]} -c "$csrc/kernels_$path.cpp" -o "$build/kernels-$path.o"
  # shellcheck disable=SC2086
  "$cxx" "${common[@]}" -O0 -g0 -DGL_FEW_TREES ${flags[$path]} -c "$csrc/conv_$path.cpp" -o "$build/conv-$path.o"
done

run() {
  local name=$1 sanitize=$2 count=$3 objects=() pids=()
  for path in "${paths[@]}"; do
    # shellcheck disable=SC2086
    "$cxx" "${common[@]}" $sanitize ${flags[$path]} -c "$csrc/engine_$path.cpp" -o "$build/$name-$path.o" &
    pids+=($!)
    objects+=("$build/$name-$path.o" "$build/kernels-$path.o" "$build/conv-$path.o")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  # shellcheck disable=SC2086
  "$cxx" "${common[@]}" $sanitize -shared "$csrc"/{api,clusters,cluster_pass,conv_api,dispatch,images,memory,pool}.cpp \
    "$csrc"/engine_{api,code,encoder,lower,merge,schedule,sequence}.cpp "${objects[@]}" -pthread -o "$build/lib$name.so"
  # shellcheck disable=SC2086
  "$cxx" "${common[@]}" $sanitize "$here/fuzz.cpp" "$build/lib$name.so" -Wl,-rpath,"$build" -pthread -o "$build/$name"
  # Not inside echo, which would hide a failure.
  said=$("$build/$name" "$count")
  echo "$name: $said"
}

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
run address "-fsanitize=address,undefined -fno-sanitize-recover=all" "$cases"
run thread "-fsanitize=thread" "$((cases / 10))"

# Python's own allocator would hide the ends of its blocks, and what it leaves behind is none of the library's business.
said=$(PYTHONPATH="$here/../../src" PYTHONMALLOC=malloc GATELIGHT_NATIVE_LIBRARY="$build/libaddress.so" \
  ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$("$cxx" -print-file-name=libasan.so)" \
  "$python" -W error "$here/fuzz_files.py" "$files")
echo "files: $said"
