#!/usr/bin/env bash
# Runs every check. `test.sh quick` stops after the unit tests. A check that cannot run fails and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.tools/bin:$PATH"
quick=${1:-}

began=$SECONDS
step() { # step <name> <command>...
  local name=$1 start=$SECONDS; shift
  printf '\033[1m==> %s\033[0m\n' "$name"
  "$@" || { printf '\033[1;31mfailed:\033[0m %s (%s)\n' "$name" "$*" >&2; exit 1; }
  printf '    %s: %d s\n' "$name" $((SECONDS - start))
}

# Clippy's driver compiles the project's own crates for the tests: what it finds fails the build, and nothing is compiled
# a second time to be looked at. The libraries below are compiled as always.
linted() {
  RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" "$@"
}

# Tests wait for processes, clocks and sockets half of the time: two for each core keep it busy.
runner=(cargo test --locked --workspace)
if cargo nextest --version >/dev/null 2>&1; then
  runner=(cargo nextest run --locked --workspace --no-fail-fast --test-threads $((2 * $(nproc))))
fi

build_tests() { linted cargo test --locked --workspace --no-run --quiet; }

run_tests() { linted target/debug/with_postgres "${runner[@]}"; } # on one PostgreSQL cluster of their own

if [ -z "$quick" ]; then step "what the tests need" scripts/need.sh test; else step "what the Rust tests need" scripts/need.sh rust; fi
step "formatting" cargo fmt --all --check
if [ -z "$quick" ]; then step "licences and sources" cargo deny --locked check --hide-inclusion-graph licenses bans sources; fi
step "lints and build of the Rust tests" build_tests
step "Rust tests on SQLite and PostgreSQL" run_tests
if [ -n "$quick" ]; then exit 0; fi

step "command center" scripts/web.sh check
step "release build" cargo build --release --locked -p polyclaw
export POLYCLAW_BIN="$PWD/target/release/polyclaw"
step "crash simulation, 10,000 seeds" "$POLYCLAW_BIN" selftest --crash 10000 --seed 1
step "outside clients and a model server nobody here wrote" .tools/python/bin/python tests/outside/run.py
step "OpenAPI linters and generated clients" node tests/openapi/run.mjs
step "browser" node tests/web/run.mjs
printf '\033[1mall checks passed in %d s\033[0m\n' $((SECONDS - began))
