#!/usr/bin/env bash
# Runs tests built with the stand-in on an NVIDIA GPU: gpu.sh FOLDER, which holds the stand-in as
# libamdhip64.so.5, the test programs `laws` and `hip`, and the example `digits`. Started in the
# package, for the example's data. Needs libcuda and NVRTC, and no Rust.
set -uo pipefail
export CARGO_MANIFEST_DIR=$PWD
cd "${1:?the folder with the built programs}"
export LD_LIBRARY_PATH=$PWD:${LD_LIBRARY_PATH:-}
for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do
    if [ -d "$folder" ]; then LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder; fi
done
export HIP_CAPTURE_DEVICE=hip HIP_CAPTURE_ENGINE=cuda
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

failed=0
for program in hip laws; do
    echo "== $program, one test at a time"
    timeout 120 "./$program" --test-threads 1 --nocapture 2>&1 || failed=1
done
echo "== laws, from many threads at once"
timeout 120 ./laws --test-threads 8 2>&1 || failed=1
echo "== digits"
timeout 120 ./digits --device hip 2>&1 || failed=1
exit $failed
