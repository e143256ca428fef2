#!/usr/bin/env bash
# What an engine costs: `bench/spark.sh N [ENGINE…]` ingests N URLs on this machine alone and as a job of each engine (pool, sail, spark),
# compares the hashes of all files, and prints the CPU seconds of all processes and their ratio. Needs 150 bytes of disk a URL in TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
urls="${1:?usage: bench/spark.sh N [pool|sail|spark…]}"
shift
engines=("$@")
[ ${#engines[@]} -gt 0 ] || engines=(pool sail spark)
. .ci/interop/env
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${TRAWL:-}" ]; then
  cargo build --release --locked
  TRAWL="$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/release/trawl"
fi
export TRAWL SPARK_LOCAL_IP=127.0.0.1 PYTHONDONTWRITEBYTECODE=1
if [ -z "${WHEEL:-}" ]; then
  PATH="$(package_python):$PATH" maturin build --quiet --release --locked --manifest-path crates/py/Cargo.toml --out "$work/dist"
  WHEEL="$(echo "$work"/dist/*.whl)"
fi
for engine in "${engines[@]}"; do
  bin=$(if [ "$engine" = spark ]; then spark_python; else package_python; fi)
  [ -d "$work/$engine-site" ] || "$bin/pip" install --quiet --no-index --no-deps --target "$work/$engine-site" "$WHEEL"
  PYTHONPATH="$work/$engine-site" "$bin/python3" bench/spark.py "$work" "$urls" "$engine"
done
