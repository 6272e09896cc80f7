#!/usr/bin/env bash
# Triton's part of the suite on the GPU of this machine, with figures; prints a summary and ends with 1 on a failure.
#
#     tests/gpu/run_triton.sh [WHEELS]
#
# WHEELS is a folder of wheels for what this Python lacks: no registry is asked. The logs go to $OUT if it is set.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python3}
work=$(mktemp -d)
out=${OUT:-$work}
site=$work/site
if [ $# -gt 0 ]; then
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$1"/*.whl || exit 1
fi
export PYTHONPATH="$PWD:$site${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
export TRITON_CACHE_DIR="$work/store" # of processes that choose none themselves
failed=0

"$python" - <<'PYTHON' || exit 1
import platform
from importlib.metadata import version

import torch

names = ("triton", "torch", "wrapt", "opentelemetry-api", "opentelemetry-sdk")
print("versions:", f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in names), sep="; ")
print("device:", torch.cuda.get_device_name(), f"CUDA {torch.version.cuda}", sep="; ")
PYTHON
nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed 's/^/driver: /'

# Processes take longer to start than to compile: several at a time, where pytest can.
workers=()
"$python" -c "import xdist" 2>/dev/null && workers=(-n "$(nproc)")

# Runs a part of the suite and prints its last lines.
run() {
  local name=$1
  shift
  echo "== $name"
  local started=$SECONDS
  "$python" -m pytest -q -p no:cacheprovider -p no:benchmark --timeout 240 --durations 3 "$@" >"$out/triton_$name.log" 2>&1 || failed=1
  grep -E "^(FAILED|ERROR)|(passed|failed|error)|s (call|setup) " "$out/triton_$name.log" | tail -15
  echo "($((SECONDS - started)) s)"
}

echo "== figures"
TRITON_TEST_DEVICE=cuda "$python" tests/gpu/triton_figures.py "$work" 2>"$out/triton_figures.log" |
  tee "$out/triton_figures.txt"
[ "${PIPESTATUS[0]}" = 0 ] || { failed=1; tail -5 "$out/triton_figures.log"; }

TRITON_TEST_DEVICE=cuda run gpu tests/gpu/test_gpu_triton.py
# A process that has a CUDA context cannot be forked and go on to use it.
TRITON_TEST_DEVICE=cuda run conformance tests/conformance -k "triton and not forked and not order" "${workers[@]}"
# The named cases need a device that refuses on demand, which is the one that is not there; here they run on this Python.
run named tests/triton "${workers[@]}"
exit "$failed"
