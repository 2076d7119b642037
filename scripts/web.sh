#!/usr/bin/env bash
# Builds the command center into web/dist. `web.sh check` also checks its types. Without Node it fails and says what to
# install; `cargo build` alone works without it, and such a binary has only the small chat page.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh web
cd web
if [ "${1:-}" = check ]; then npm run --silent check; fi
# Only if something changed: the stamp is younger than every source.
newer() { find src public scripts index.html package-lock.json vite.config.ts svelte.config.js tsconfig.json -newer dist/index.html -print -quit; }
if [ -f dist/index.html ] && [ -z "$(newer)" ]; then exit 0; fi
echo "building the command center"
npm run --silent build
