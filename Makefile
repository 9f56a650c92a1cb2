# The few commands a person types. Meson does the building; docs/hacking.md says more.
# Every target that needs Debian packages asks scripts/install-deps for them first (SKIP_DEPS=1 does not).

BUILD   ?= build
RELEASE ?= build-release
PREFIX  ?= /usr/local
PYTHON  ?= /usr/bin/python3
MINUTES ?= 60

MESON  := meson
NINJA  := ninja
DEPS   := $(if $(SKIP_DEPS),@:,@scripts/install-deps)
RUNNER := python3 tests/conformance/run.py --build $(BUILD)

.DEFAULT_GOAL := all
.PHONY: all tests benches demo check conformance conformance-full conformance-wheels soak chaos fuzz bench bench-programs bench-fabric bench-jobs
.PHONY: conformance-ucx conformance-fabtests shown validate-fabric validate-jobs validate-live validate-loss interop sanitize install dist deb wheel portability containers gitlab format clean help

all: ## build the product, all that is installed, optimised, into build/
	$(DEPS) build
	@scripts/build $(BUILD) product

tests: ## build the tests, and all else
	$(DEPS) build
	@scripts/build $(BUILD)

benches: ## build the product and the benchmarks
	$(DEPS) build
	@scripts/build $(BUILD) product benches

demo: ## run RDMA programs on one host, over the wire, and TCP beside them, and print one table (a minute and a half with the build)
	$(DEPS) build demo
	@scripts/build $(BUILD) product
	@python3 bench/demo.py --build $(BUILD)

check: ## build and run all tests; ends with "N passed, N failed, N skipped"
	$(DEPS) build check
	@scripts/build $(BUILD)
	@scripts/check --build $(BUILD)

conformance: ## run the pairwise selection of unmodified programs (ARGS="--list", "--filter TEXT", ...)
	$(DEPS) build check
	@scripts/build $(BUILD) product programs
	@$(RUNNER) $(ARGS)

conformance-full: ## run the whole product of programs, options, sizes, paths and users (hours; ARGS="--shard 1/4")
	$(DEPS) build check
	@scripts/build $(BUILD) product programs
	@$(RUNNER) --full $(ARGS)

conformance-wheels: ## install pinned wheels from PyPI and run them (7 GB; ARGS="--list", "--only nixl", "--venv DIRECTORY")
	$(DEPS) build check
	@scripts/build $(BUILD) product programs
	@python3 tests/wheels/wheels.py --build $(BUILD) $(ARGS)

conformance-ucx: ## build UCX's gtest, once (half an hour), and run it (UCX_SOURCE=TREE; ARGS="--list", "--filter PATTERN", "--shard 1/4")
	$(DEPS) build check
	@scripts/build $(BUILD) product
	@python3 tests/suites/run.py ucx --build $(BUILD) $(if $(UCX_SOURCE),--source $(UCX_SOURCE)) $(ARGS)

conformance-fabtests: ## build libfabric's fabtests, once, and run them over verbs (FABTESTS_SOURCE=TREE; ARGS="--filter unit")
	$(DEPS) build check
	@scripts/build $(BUILD) product
	@python3 tests/suites/run.py fabtests --build $(BUILD) $(if $(FABTESTS_SOURCE),--source $(FABTESTS_SOURCE)) $(ARGS)

soak: ## run the deterministic simulation on ever new seeds (MINUTES=60)
	$(DEPS) build
	@scripts/build $(BUILD) tests/sim/sim
	@$(BUILD)/tests/sim/sim --soak $(MINUTES)

chaos: ## kill, stop, flood and attack programs that are connected, for MINUTES=60 (ARGS="--seed N", "--list", ...)
	$(DEPS) build check
	@scripts/build $(BUILD) product programs
	@python3 tests/chaos/chaos.py --build $(BUILD) --minutes $(MINUTES) $(ARGS)

fuzz: ## run the libFuzzer targets, each for a minute (ARGS="600" for ten)
	$(DEPS) build fuzz
	@scripts/fuzz $(ARGS)

shown: ## put into README and docs/ what the commands that they show print today (a test compares)
	$(DEPS) build
	@scripts/build $(BUILD) product
	@python3 tests/unit/docs/shown_test.py $(BUILD) . --write
	@python3 tests/unit/docs/keys_doc_test.py $(BUILD)/src/cli/verbena docs/verbena-sim.1 --write
	@scripts/rooms --page >docs/rooms.md

bench: ## measure beside UCX and TCP in the same run, name what misses (ARGS="--list", "--only ROW", "--json FILE")
	$(DEPS) build bench
	@scripts/build $(BUILD) product benches programs
	@python3 bench/bench.py --build $(BUILD) $(ARGS)

bench-programs: ## measure UCX, libfabric, Open MPI, iperf3 over rsockets and connections, each beside TCP (ARGS="--rounds 3")
	$(DEPS) build bench
	@scripts/build $(BUILD) product benches programs
	@python3 bench/bench.py --build $(BUILD) --programs $(ARGS)

bench-fabric: ## measure the simulator: packet-hops a CPU-second, memory (ARGS="--rounds 5", "--only 1024", "--where 1024", "--htsim COMMAND")
	$(DEPS) build
	@scripts/build $(BUILD) product
	@python3 bench/fabric.py --build $(BUILD) $(ARGS)

bench-jobs: ## measure a ring allreduce beside the same flows as a list, minutes (ARGS="--bytes 256MB", "--only alltoall", "--json FILE")
	$(DEPS) build
	@scripts/build $(BUILD) product
	@python3 bench/jobs.py --build $(BUILD) $(ARGS)

validate-fabric: ## hold the simulator against published runs and laws, minutes (ARGS="--list", "--only 'dcqcn/*'", "--seeds 5")
	$(DEPS) build
	@scripts/build $(BUILD) product tests/unit/fabric/livelock_test
	@$(if $(ARGS),:,python3 tests/validation/examples.py --build $(BUILD) --all)
	@$(if $(ARGS),:,python3 tests/validation/flows_vs_packets.py --build $(BUILD))
	@python3 tests/validation/golden.py --build $(BUILD) $(ARGS)

validate-loss: ## hold NSCC and trimmed packets against htsim's UEC, and print what lost packets cost, two minutes (ARGS="--recovery go-back-n", "--list")
	$(DEPS) build
	@scripts/build $(BUILD) product
	@python3 tests/validation/loss.py --build $(BUILD) $(ARGS)

validate-jobs: ## hold collectives and jobs against published figures (ARGS="--list", "--only 'simai/*'", "--simai DIRECTORY")
	$(DEPS) build
	@scripts/build $(BUILD) product
	@python3 tests/validation/jobs.py --build $(BUILD) $(ARGS)

validate-live: ## hold simulations against the same engine live, between network namespaces, ten minutes (ARGS="--list", "--only 'marks*'")
	$(DEPS) build check
	@scripts/build $(BUILD) product programs
	@python3 tests/validation/live_against_sim.py --build $(BUILD) $(ARGS)

interop: ## run against a Linux kernel's rxe in a virtual machine (RXE_PEER names its script; docs/interop.md)
	$(DEPS) build check interop
	@scripts/build $(BUILD) product programs tests/unit/verbs/verbs_dmabuf_test
	@python3 tests/interop/rxe.py --build $(BUILD) $(ARGS)

sanitize: ## run the tests under ASan and UBSan (build-asan/), those of host/ under TSan too (build-tsan/)
	$(DEPS) build check
	@scripts/sanitize

install: ## install a release build, from build-release/, into PREFIX (default /usr/local); DESTDIR is honoured
	$(DEPS) build
	@scripts/build $(RELEASE) -Dtests=false -Db_ndebug=true -Dprefix=$(PREFIX)
	@$(MESON) configure $(RELEASE) -Dprefix=$(PREFIX)
	@$(MESON) install -C $(RELEASE)

dist: ## make the release's tarball from the last commit in build-dist/, build it and run its tests (ARGS="--no-tests" does not)
	$(DEPS) build check
	@scripts/dist $(ARGS)

deb: ## build Debian packages of this tree into build-deb/
	$(DEPS) build deb
	@scripts/deb

wheel: ## make the Python wheel and the sdist of a release build, into build-wheel/ (PYTHON=PROGRAM)
	$(DEPS) build wheel
	@scripts/build $(RELEASE) -Dtests=false -Db_ndebug=true -Dprefix=$(PREFIX)
	@$(PYTHON) scripts/wheel $(RELEASE)

portability: ## from nothing, in clean roots of Debian 12 and 13: everything (root; ARGS="--only NAME", "--list", ...)
	$(DEPS) portability
	@python3 tests/portability/run.py $(ARGS)

containers: ## build the image of the Containerfile, run the pods of examples/kubernetes/ in podman (root; ARGS="--directory DIR")
	$(DEPS) containers
	@python3 tests/containers/run.py $(ARGS)

gitlab: ## run a job with examples/ci/gitlab.yml by gitlab-ci-local, which is not installed for it (root)
	@python3 tests/ci/gitlab.py

format: ## put every C file into the house style, with clang-format 14
	$(DEPS) format
	@find . -path './build*' -prune -o -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i

clean: ## remove what was built
	rm -rf $(BUILD) $(RELEASE) build-asan build-tsan build-fuzz build-deb build-wheel

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
