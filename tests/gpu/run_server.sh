#!/usr/bin/env bash
# The model server of tests/server, with Triton's kernels on the GPU of this machine; ends with 1 on a failure.
#
#     tests/gpu/run_server.sh WHEELS
#
# WHEELS is a folder with a wheel of otel-kernel (`uv build --wheel`) and of what this Python lacks, as README.md says,
# and beside that numba, fastapi, uvicorn, httpx, opentelemetry-distro and opentelemetry-instrumentation-fastapi with
# what they need: no registry is asked. The log goes to $OUT if it is set.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3}
work=$(mktemp -d)
out=${OUT:-$work}
venv=$work/venv
# Commands and the boot of every process are part of the test: they need an environment of their own.
"$python" -m venv --system-site-packages "$venv" || exit 1
"$venv/bin/python" -m pip install -q --no-index --no-deps "$1"/*.whl || exit 1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# A forked worker makes its own CUDA context: neither the front nor the engine has one.
TRITON_TEST_DEVICE=cuda "$venv/bin/python" -m pytest -q -p no:cacheprovider --timeout 500 tests/server/test_server.py \
  >"$out/server.log" 2>&1
status=$?
grep -E "^(FAILED|ERROR)|(passed|failed|error)" "$out/server.log" | tail -15
exit "$((status != 0))"
