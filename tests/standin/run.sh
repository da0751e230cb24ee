#!/usr/bin/env bash
# Builds the stand-in for libamdhip64 and runs the tests through it. Needs no ROCm: the stand-in
# is also what the crate is linked to, so a function that it lacks is an error of the linker.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
prefix=$target/standin/prefix
CARGO_TARGET_DIR=$target/standin cargo build --manifest-path tests/standin/Cargo.toml

# What the bindings' build script and the linker look for.
mkdir -p "$prefix/include/hip" "$prefix/lib"
touch "$prefix/include/hip/hip_runtime_api.h"
for name in libamdhip64.so libamdhip64.so.5; do
    ln -sf "$target/standin/debug/libamdhip64.so" "$prefix/lib/$name"
done
export HIP_PATH=$prefix LD_LIBRARY_PATH=$prefix/lib HIP_CAPTURE_DEVICE=hip
# One test at a time: all use the one simulator of the process, and a seed shall mean something.
export RUST_TEST_THREADS=1

for seed in ${SEEDS:-0 1 2}; do
    echo "== the laws through FFI, seed $seed"
    HIP_CAPTURE_SEED=$seed cargo test --features hip --test laws
done
