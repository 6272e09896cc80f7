#!/usr/bin/env bash
# torch.compile on the GPU of this machine: every way to a kernel; prints a summary and ends with 1 on a failure.
#
#     tests/gpu/run_torch.sh [WHEELS]
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

"$python" - <<'PYTHON' || exit 1
import platform
from importlib.metadata import version

import torch

names = ("torch", "triton", "wrapt", "opentelemetry-api", "opentelemetry-sdk")
print("versions:", f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in names), sep="; ")
print("device:", torch.cuda.get_device_name(), f"CUDA {torch.version.cuda}", sep="; ")
PYTHON
nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed 's/^/driver: /'

"$python" tests/torch/programs/points.py || exit 1
"$python" tests/gpu/torch_runs.py "$work" "${SECONDS_LIMIT:-430}" ${STORES:-} 2>"$out/torch_runs.err" | tee "$out/torch_runs.log"
status=${PIPESTATUS[0]}
tail -5 "$out/torch_runs.err"
cp "$work/torch_runs.json" "$out"
exit "$status"
