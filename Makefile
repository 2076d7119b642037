# Two commands: `make run` starts Polyclaw, `make test` checks everything.

.PHONY: run build test check fuzz bench clean

run: build ## build what is missing, start Polyclaw and print the link
	@target/release/polyclaw up

build:
	@scripts/need.sh build
	@echo "building polyclaw (a few minutes the first time)"
	@cargo build --release --locked -p polyclaw

test: ## install what the tests need, run them all
	@scripts/test.sh

check: ## what to run before every commit: formatting, lints, unit tests
	@scripts/test.sh quick

fuzz: ## more random cases than `make test` runs; POLYCLAW_FUZZ_CASES says how many, POLYCLAW_SEED repeats one
	@POLYCLAW_FUZZ_CASES=$${POLYCLAW_FUZZ_CASES:-20000} cargo test --locked -p polyclaw --test faults fuzz:: -- --nocapture

bench: build ## measure this build on this machine
	@target/release/polyclaw bench all

clean:
	@cargo clean
	@rm -rf .tools tests/web/node_modules tests/mcp/node_modules tests/telegram/node_modules
