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

rust_tests() { # on one PostgreSQL cluster of their own
  local runner=(cargo test --locked --workspace)
  if cargo nextest --version >/dev/null 2>&1; then runner=(cargo nextest run --locked --workspace --no-fail-fast); fi
  cargo run --quiet --locked -p polyclaw-testkit --bin with_postgres -- "${runner[@]}"
}

if [ -z "$quick" ]; then step "what the tests need" scripts/need.sh test; else step "what the Rust tests need" scripts/need.sh rust; fi
step "formatting" cargo fmt --all --check
step "lints" cargo clippy --locked --workspace --all-targets -- -D warnings
if [ -z "$quick" ]; then step "licences and sources" cargo deny --locked check --hide-inclusion-graph licenses bans sources; fi
step "Rust tests on SQLite and PostgreSQL" rust_tests
if [ -n "$quick" ]; then exit 0; fi

step "command center" scripts/web.sh check
step "release build" cargo build --release --locked -p polyclaw
export POLYCLAW_BIN="$PWD/target/release/polyclaw"
step "crash simulation, 10,000 seeds" "$POLYCLAW_BIN" selftest --crash 10000 --seed 1
step "outside clients and a model server nobody here wrote" .tools/python/bin/python tests/outside/run.py
step "browser" node --test --test-concurrency=1 tests/web/
printf '\033[1mall checks passed in %d s\033[0m\n' $((SECONDS - began))
