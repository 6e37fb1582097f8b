# One word per job; `make` alone lists them. The commands of test and lint are those of .ci/run.

CASES ?= 20000
MINUTES ?= 60
# with a seed of its own in each round, which a failure shows
RANDOM_TESTS = $(addprefix tests/test_,properties.py damage.py portions.py anonymise.py leaks.py secrets.py)

.PHONY: help build test lint bench fuzz nightly samples notebooks

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: ## latpcap with an optimised core and all tools into this environment; Python files are used in place
	SETUPTOOLS_RUST_CARGO_PROFILE=release pip install -e '.[dev]'

test: ## all tests, of the core and of the package
	bash .ci/run core
	python -m pytest

lint: ## ruff, mypy, the stub against the module, rustfmt, clippy
	bash .ci/run lint

bench: ## speed against other tools, as ratios of one run
	benchmarks/run
	benchmarks/instructions

fuzz: ## the core's property tests with many more cases (CASES=20000)
	PROPTEST_CASES=$(CASES) cargo test --release --locked --manifest-path core/Cargo.toml

nightly: ## tests that take too long for every change: all slow ones, fuzz, hostile input, property tests (MINUTES=60)
	LATPCAP_TESTS=all bash .ci/run
	core/fuzz/run $$(($(MINUTES) * 60 / 7))
	python .ci/hostile.py $$(($(MINUTES) * 60 / 3))
	PROPTEST_CASES=$(CASES) cargo test --release --locked --manifest-path core/Cargo.toml
	end=$$(($$(date +%s) + $(MINUTES) * 60)); while [ $$(date +%s) -lt $$end ]; do python -m pytest -q -x $(RANDOM_TESTS) || exit 1; done

samples: ## records sample_pcaps/ again (root; two network namespaces, nginx, wrk, tcpdump, ...)
	python3 sample_pcaps/record.py && cp sample_pcaps/nginx-latency.pcap latpcap/samples/
	python3 sample_pcaps/situations.py

notebooks: ## runs the notebooks from top to bottom
	python -m pytest tests/test_notebooks.py
