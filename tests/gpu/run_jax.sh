#!/usr/bin/env bash
# JAX's part of the suite on the GPU of this machine, with figures; prints a summary and ends with 1 on a failure.
#
#     tests/gpu/run_jax.sh [WHEELS]
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
export PYTHONPATH="$PWD:$site${PYTHONPATH:+:$PYTHONPATH}"
export JAX_PLATFORMS=${JAX_PLATFORMS:-cuda} XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONDONTWRITEBYTECODE=1
failed=0

"$python" - <<'PYTHON' || exit 1
import platform
from importlib.metadata import version

import jax

names = ("jax", "jaxlib", "wrapt", "opentelemetry-api", "opentelemetry-instrumentation")
device = jax.devices()[0]
print("versions:", f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in names), sep="; ")
print(f"device: {device.device_kind}; {device.client.platform} {device.client.platform_version}")
PYTHON

echo "== figures"
"$python" tests/gpu/jax_figures.py "$work" 2>"$out/jax_figures.log" || { failed=1; tail -5 "$out/jax_figures.log"; }

# Runs a part of the suite and prints its last lines.
run() {
  local name=$1
  shift
  echo "== $name"
  "$python" -m pytest -q -p no:cacheprovider -p no:benchmark --timeout 240 "$@" >"$out/jax_$name.log" 2>&1 || failed=1
  grep -E "^(FAILED|ERROR)|(passed|failed|error)" "$out/jax_$name.log" | tail -15
}

# Processes take longer to start than to compile: several at a time, where pytest can.
workers=()
"$python" -c "import xdist" 2>/dev/null && workers=(-n 8)
run gpu tests/gpu/test_gpu_jax.py
run conformance tests/conformance -k "jax and not order and not kept" "${workers[@]}"
exit "$failed"
