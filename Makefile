# Every target first installs what it needs (hack/setup.sh).
#   make demo ARGS=--once      make test ARGS=packages/kit/test/time.test.ts

# Node 24 is a development dependency: it comes first, whatever the machine brings along.
export PATH := $(CURDIR)/node_modules/.bin:$(CURDIR)/.tools/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: setup demo test e2e chaos e2e-gateways route-differences bare-machine fuzz bench bench-limiter bench-client bench-xds bench-auth bench-platform screenshots check generate format images release clean help

setup: ## Node 24 and npm packages only (other targets run it when necessary)
	@sh hack/setup.sh

demo: ## the whole platform behind a real Envoy on this machine (ARGS=--once: exit after the table)
	@sh hack/setup.sh demo
	@exec node hack/demo/main.ts $(ARGS)

test: ## the checks, then all tests (ARGS=<file or folder>: only these, and no checks)
	@sh hack/setup.sh test
	@find .tap/compiled -type f -mtime +7 -delete 2>/dev/null || true # compile cache of hack/run-tests
	$(if $(ARGS),,@npm run --silent check)
	@exec node hack/run-tests/main.ts $(ARGS)

e2e: ## the end-to-end tests: the whole platform and its failures (ARGS=<file>: only that one)
	@sh hack/setup.sh test
	@exec node hack/run-tests/main.ts $(or $(ARGS),$(wildcard hack/e2e/*.test.ts))

chaos: ## random edits and failures of the control plane for 15 minutes, a minute in make test (CHAOS_SEED, CHAOS_SECONDS)
	@sh hack/setup.sh test
	@CHAOS_SECONDS=$${CHAOS_SECONDS:-900} exec node hack/run-tests/main.ts hack/e2e/xds-chaos.test.ts

e2e-gateways: ## Envoy Gateway with one access policy, with BackendTrafficPolicies, and random routes (root; compiles it once)
	@sh hack/setup.sh e2e-gateways
	@sh hack/e2e-gateways/run.sh hack/e2e-gateways/routes/main.ts
	@sh hack/e2e-gateways/run.sh hack/e2e-gateways/policies/main.ts
	@sh hack/e2e-gateways/run.sh hack/e2e-gateways/main.ts

route-differences: ## 10,000 random requests: the route that Envoy Gateway matches, and ours (root; ARGS=--seed=1 repeats a failure)
	@sh hack/setup.sh e2e-gateways
	@sh hack/e2e-gateways/run.sh hack/e2e-gateways/routes/main.ts $(ARGS)

bare-machine: ## `make test` and `make demo` of a fresh clone on a new Debian with Node 20 only (root; ARGS=--keep-cache: compiles nothing)
	@sh hack/bare-machine.sh $(ARGS)

fuzz: ## mutated sessions of real clients against the gRPC server, for ten minutes (ARGS='--seconds=60 --seed=1')
	@sh hack/setup.sh
	@exec node packages/grpc-server/test/support/fuzz/main.ts $(ARGS)

bench: ## all benchmarks (ARGS=--quick, --write; --help lists more)
	@sh hack/setup.sh bench
	@sh hack/setup.sh go-tools
	@exec node hack/bench/main.ts $(ARGS)

screenshots: ## pictures of all pages of the console for docs/console.md, in docs/images/console
	@sh hack/setup.sh test
	@exec node hack/screenshots/main.ts $(ARGS)

bench-limiter: ## rate limit decisions: calls/s, latency, CPU, loading rules (ARGS=--quick, --write; PEER_RATELIMIT=path of the Go limiter)
	@sh hack/setup.sh bench
	@exec node hack/bench/main.ts limiter $(ARGS)

bench-client: ## the OAuth client beside bare fetch and its peers (ARGS=--quick, --write)
	@sh hack/setup.sh
	@exec node hack/bench/main.ts client $(ARGS)

bench-xds: ## how fast edits reach limiters, and the cost of many objects and limiters (ARGS=--quick, --write)
	@sh hack/setup.sh bench
	@sh hack/setup.sh go-tools
	@exec node hack/bench/main.ts xds $(ARGS)

bench-auth: ## the user authentication server: requests/s, latency, CPU (ARGS=--quick, --write)
	@sh hack/setup.sh
	@exec node hack/bench/main.ts auth $(ARGS)

bench-platform: ## external authorization, and what both filters add to a request through Envoy (ARGS=--quick, --write)
	@sh hack/setup.sh bench
	@exec node hack/bench/main.ts platform $(ARGS)

check: ## format, lint, types, dead code, generated files, links
	@sh hack/setup.sh
	@npm run --silent check

generate: ## generated files: protobuf code, tables of settings and errors, CRD, values of charts
	@sh hack/setup.sh
	@npm run --silent generate

format: ## format and fix what can be fixed
	@sh hack/setup.sh
	@npm run --silent format

images: ## the container images of all services, by Docker (ARGS=--push; ARGS=--help lists variables)
	@sh hack/setup.sh
	@exec node hack/images/build-images.ts $(ARGS)

release: ## charts, CRD, SDK and checksums into dist/, and the commands that publish them (ARGS=--publish runs them; ARGS=--set-version=1.2.3)
	@sh hack/setup.sh test
	@sh hack/setup.sh go-tools
	@exec node hack/release/main.ts $(ARGS)

clean: ## remove everything that was installed in this checkout
	rm -rf node_modules .tools .tap coverage dist

help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
