#!/usr/bin/env bash
# The model server of tests/server, with Triton's kernels on the GPU of this machine; ends with 1 on a failure.
#
#     tests/gpu/run_server.sh [WHEELS]
#
# WHEELS is a folder of wheels for what this Python lacks, among them fastapi, uvicorn, httpx and
# opentelemetry-instrumentation-fastapi with what they need: no registry is asked. The log goes to $OUT if it is set.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3}
work=$(mktemp -d)
out=${OUT:-$work}
venv=$work/venv
# Commands such as `otel-kernel` and `opentelemetry-instrument` are part of the test: they need an environment.
"$python" -m venv --system-site-packages "$venv" || exit 1
if [ $# -gt 0 ]; then
  "$venv/bin/python" -m pip install -q --no-index --no-deps "$1"/*.whl || exit 1
fi
"$venv/bin/python" -m pip install -q --no-index --no-deps --no-build-isolation --editable . || exit 1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# A forked worker makes its own CUDA context: neither the front nor the engine has one.
TRITON_TEST_DEVICE=cuda "$venv/bin/python" -m pytest -q -p no:cacheprovider --timeout 500 tests/server \
  >"$out/server.log" 2>&1
status=$?
grep -E "^(FAILED|ERROR)|(passed|failed|error)" "$out/server.log" | tail -15
exit "$((status != 0))"
