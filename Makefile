# Two commands: `make run` starts Polyclaw, `make test` checks everything.

.PHONY: run build web test check fuzz bench clean

run: build ## build what is missing, start Polyclaw and print the link
	@target/release/polyclaw up

build: web
	@scripts/need.sh build
	@echo "building polyclaw (a few minutes the first time)"
	@cargo build --release --locked -p polyclaw

web: ## build the command center, which the next build of the binary carries
	@scripts/web.sh

test: ## install what the tests need, run them all
	@scripts/test.sh

check: ## what to run before every commit: formatting, lints, unit tests
	@scripts/test.sh quick

fuzz: ## more random cases than `make test` runs; POLYCLAW_FUZZ_CASES says how many, POLYCLAW_SEED repeats one
	@POLYCLAW_FUZZ_CASES=$${POLYCLAW_FUZZ_CASES:-20000} cargo test --locked -p polyclaw --test faults fuzz:: -- --nocapture
	@POLYCLAW_FUZZ_CASES=$${POLYCLAW_FUZZ_CASES:-20000} cargo test --locked -p polyclaw-provider --lib fuzz:: -- --nocapture

bench: build ## measure this build on this machine
	@target/release/polyclaw bench all

clean:
	@cargo clean
	@find web/dist -mindepth 1 ! -name .gitkeep -delete
	@rm -rf .tools web/node_modules tests/web/node_modules tests/mcp/node_modules tests/telegram/node_modules tests/openapi/node_modules
