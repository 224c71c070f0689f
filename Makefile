# All commands of this repository. CI runs `make check` and `make suites` (.ci/run).
# A verb first makes what it needs, if its sources have changed; the stamp files are in .venv, .cache and node_modules.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
BUF := node_modules/.bin/buf
# What npm wrote last when it installed the TypeScript workspace.
TYPESCRIPT := clients/typescript/node_modules/.package-lock.json
MODEL := .cache/model
SUITES := .cache/suites
# The frameworks in Python, each with its packages in an environment of its own.
PYTHON_SUITES := langgraph nat
PIP := -m pip --disable-pip-version-check --quiet
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -type f -not -path '*/target/*')
PYTHON_SOURCES := $(shell find server clients/python -name '*.py' -not -path '*/build/*')
GO_SOURCES := benchmarks/load_go clients/go
# Cargo builds into CARGO_TARGET_DIR, by default target/.
CARGO := cargo
# With the byte code of tests kept, whatever the environment says: to compile them takes each worker half a minute.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --quiet
BRIEF := --hypothesis-profile=brief -m 'not faults and not slow'
CHECKED := --hypothesis-profile=check -m 'not faults'

PYTHON_READY := $(VENV)/.requirements $(VENV)/.client
READY := $(PYTHON_READY) $(VENV)/.server $(VENV)/.compiled $(MODEL)/tokenizer.json

# The values of parameters. A wrong one is refused before anything is built.
WORKLOADS = $(shell sed -n '/^WORKLOADS/,/^}/s/^    "\(.*\)":.*/\1/p' benchmarks/run.py)
FUZZED = $(notdir $(wildcard fuzz/corpus/*))
one_of = $(if $(filter-out $2,$($1)),$(error $1=$($1): it must be one of: $2))
matching = $(if $($1),$(if $(shell [[ '$($1)' =~ ^$2$$ ]] && echo yes),,$(error $1=$($1): it must be a $3)))
whole_number = $(call matching,$1,[0-9]+,whole number)
number = $(call matching,$1,[0-9]+(\.[0-9]+)?,number)
in_folder = $(if $($1),$(if $(wildcard $(dir $($1))),,$(error $1=$($1): there is no folder $(dir $($1)))))

ifneq ($(filter bench,$(MAKECMDGOALS)),)
$(call one_of,W,$(WORKLOADS))$(call number,SECONDS)$(call in_folder,OUT)
endif
ifneq ($(filter container,$(MAKECMDGOALS)),)
$(call one_of,TARGET,remora without-model)
endif
ifneq ($(filter fuzz,$(MAKECMDGOALS)),)
$(call one_of,T,$(FUZZED))$(call whole_number,SECONDS)
endif
ifneq ($(filter faults,$(MAKECMDGOALS)),)
$(call whole_number,KILLS)$(call whole_number,SEED)
endif

##@ Verbs

.PHONY: help
help: ## Show the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Make .venv with both packages, built and editable, and fetch the embedding model

.PHONY: gen
gen: $(PYTHON_READY) $(BUF) .cache/generate/.installed ## Generate code from the .proto files, the sync client, and docs/reference
	tools/generate.sh
	$(BIN)/python tools/derive_sync.py
	PYTHONPATH=server:clients/python $(BIN)/python tools/write_reference.py

.PHONY: build
build: $(PYTHON_READY) $(VENV)/.server ## Build the engine and install both packages in .venv

.PHONY: fmt
fmt: $(PYTHON_READY) $(BUF) $(TYPESCRIPT) ## Format everything
	$(BIN)/ruff check --select I --fix --quiet .
	$(BIN)/ruff format --quiet .
	$(CARGO) fmt --all
	$(BUF) format --write
	npm run --silent --prefix clients/typescript format
	! command -v gofmt >/dev/null || gofmt -w $(GO_SOURCES)

.PHONY: lint
lint: check-format check-lint check-types check-layers check-contract ## Check formats, lints, types, layers and the contract

.PHONY: test
test: $(READY) $(if $(shell command -v npm),$(TYPESCRIPT)) ## Run the tests of Rust, Python, TypeScript and Go, without the slow ones
	@tools/run_parts.sh --together "Rust's tests" tools/test_rust.sh "Python's tests" "$(PYTEST) $(BRIEF)" \
		"TypeScript's tests" "tools/test_typescript.sh --if-installed" "Go's tests" "tools/test_go.sh --if-installed"

.PHONY: test-rust
test-rust: ## Run Rust's tests
	@tools/test_rust.sh

.PHONY: test-python
test-python: $(READY) ## Run Python's tests, without the slow ones
	$(PYTEST) $(BRIEF)

.PHONY: test-typescript
test-typescript: $(READY) $(TYPESCRIPT) ## Run TypeScript's tests
	@tools/test_typescript.sh

.PHONY: test-go
test-go: $(READY) ## Run Go's tests
	@tools/test_go.sh

.PHONY: test-java
test-java: $(READY) ## Run Java's tests, with Maven
	@tools/test_java.sh

.PHONY: suites
suites: $(READY) $(foreach suite,voltagent langgraph-js $(PYTHON_SUITES),$(SUITES)/$(suite)/.installed) ## Test what plugs into agent frameworks, with their packages, which are large, and Java's client
	@tools/run_parts.sh "VoltAgent's suite" tools/suite_voltagent.sh "LangGraph's suite" "tools/suite_python.sh langgraph" \
		"NeMo's suite" "tools/suite_python.sh nat" "LangGraph.js's suite" tools/suite_langgraph_js.sh \
		"Java's tests" "tools/test_java.sh --if-installed"

.PHONY: faults
faults: $(READY) ## Test faults: at every point, isolation of tenants, all examples of properties, 200 kills; KILLS=count, SEED=one to repeat
	@tools/run_parts.sh --together "tests of faults" "$(PYTEST) -m faults" \
		"properties, with all examples" "$(PYTEST) -m 'hypothesis and not faults'" "kills" \
		"$(BIN)/python -m tests.faults.kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))"

.PHONY: bench
bench: $(READY) .cache/bench/.installed $(foreach suite,$(filter voltagent langgraph,$W),$(SUITES)/$(suite)/.installed) ## Run append and window, briefly, or one benchmark: W=append, window, client, overload, search, backlog, recall, queries, floor, scale, records, vectors, voltagent, langgraph, short_term, context, facts or pod; OUT=file.json
	$(if $(filter voltagent,$W),tools/prepare_typescript.sh voltagent voltagent)
	$(CARGO) build --release --quiet --package remora-load
	$(BIN)/python -m benchmarks.run --load "$${CARGO_TARGET_DIR:-target}/release/remora-load" \
		$(if $(W),--workload $(W)) $(if $(OUT),--out $(OUT)) $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: bench-table
bench-table: $(PYTHON_READY) ## Write the README's table of benchmarks from the files in benchmarks/published
	$(BIN)/python -m benchmarks.table

.PHONY: fuzz
fuzz: $(READY) .cache/fuzz/.installed ## Fuzz requests, the journal, records and token counts, 10 minutes each (T=journal: only one; SECONDS=60)
	tools/fuzz.sh "$(or $(T),requests journal records tokens)" $(or $(SECONDS),600)

.PHONY: demo
demo: $(READY) ## Run the demo; SVG=docs/demo.svg also writes a picture of it
	$(BIN)/python demo/demo.py $(if $(SVG),--svg $(SVG))

.PHONY: wheel
wheel: $(PYTHON_READY) ## Build the wheels of both packages into dist/
	tools/build_wheels.sh dist

.PHONY: container
container: ## Build the image with docker or buildah: remora:latest, or TAG=name TARGET=without-model
	tools/build_container.sh $(or $(TAG),remora:latest) $(if $(TARGET),--target $(TARGET))

.PHONY: container-test
container-test: $(READY) ## Build the image without a container engine (root, buildah, debootstrap), and run the demo against it
	tools/test_container.sh

.PHONY: check
check: lint check-generated check-native check-deploy check-tests check-wheels check-npm ## Check everything but what `make suites` tests, as CI does

##@ Parts of `make check`

.PHONY: check-format
check-format: $(PYTHON_READY) $(BUF)
	$(BIN)/ruff format --check --quiet .
	$(CARGO) fmt --all --check
	$(BUF) format --diff --exit-code
	@# Who changes nothing of Go needs no Go.
	! command -v gofmt >/dev/null || test -z "$$(gofmt -l $(GO_SOURCES))"

.PHONY: check-lint
check-lint: $(PYTHON_READY) $(TYPESCRIPT)
	$(BIN)/ruff check --quiet .
	npm run --silent --prefix clients/typescript lint
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	$(CARGO) clippy --quiet --workspace --all-targets --features python -- -D warnings
	! command -v go >/dev/null || for folder in $(GO_SOURCES); do go -C "$$folder" vet ./...; done

.PHONY: check-types
check-types: $(PYTHON_READY) $(TYPESCRIPT)
	$(BIN)/mypy
	npm run --silent --prefix clients/typescript types

.PHONY: check-layers
check-layers: $(PYTHON_READY)
	PYTHONPATH=server:clients/python $(BIN)/lint-imports --no-logo

.PHONY: check-contract
check-contract: $(BUF)
	$(BUF) lint
	$(BUF) breaking proto --against proto/image.binpb

.PHONY: check-generated
check-generated: $(PYTHON_READY) $(BUF) .cache/generate/.installed
	tools/check_generated.sh
	$(BIN)/python tools/derive_sync.py --check
	PYTHONPATH=server:clients/python $(BIN)/python tools/write_reference.py --check

.PHONY: check-native
check-native: build
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml \
		--allowlist tools/stubtest.allow remora_server._native

.PHONY: check-tests
# npm also installs pyright, for tests of what it says of users' code.
check-tests: $(READY) $(BUF) $(TYPESCRIPT)
	@tools/run_parts.sh --together "Rust's tests" tools/test_rust.sh "Python's tests" "$(PYTEST) $(CHECKED)" \
		"TypeScript's tests" tools/test_typescript.sh "Go's tests" tools/test_go.sh

.PHONY: check-deploy
check-deploy: .cache/deploy/.installed
	@PATH="$(CURDIR)/.cache/deploy/bin:$$PATH" tools/check_deploy.sh

.PHONY: check-wheels
check-wheels: $(PYTHON_READY)
	tools/check_wheels.sh

.PHONY: check-npm
check-npm: $(READY) $(TYPESCRIPT)
	tools/check_npm.sh

##@ Rarely

.PHONY: lock
lock: ## Lock the versions of Python packages again (UPGRADE=1: the newest)
	tools/lock.sh $(if $(UPGRADE),--upgrade)

.PHONY: image
image: $(BUF) ## Save the contract as released: later changes may not break it
	$(BUF) build proto --exclude-source-info --output proto/image.binpb

##@ What verbs need

$(BIN)/python:
	tools/create_venv.sh $(VENV)

$(VENV)/.requirements: requirements/development.txt | $(BIN)/python
	$(BIN)/python $(PIP) install --require-hashes -r $<
	touch $@

$(VENV)/.client: clients/python/pyproject.toml $(VENV)/.requirements
	$(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable clients/python
	touch $@

$(VENV)/.server: pyproject.toml $(RUST_SOURCES) $(VENV)/.requirements
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

# As installed packages are: without it, and with PYTHONDONTWRITEBYTECODE, every start of a server compiles them again.
$(VENV)/.compiled: $(PYTHON_SOURCES) $(VENV)/.server
	$(BIN)/python -m compileall -q server clients/python
	touch $@

$(MODEL)/tokenizer.json: | $(PYTHON_READY) $(VENV)/.server
	$(BIN)/remora model install --dir $(MODEL)

$(BUF): package.json package-lock.json
	npm ci --loglevel=error
	touch $@

$(TYPESCRIPT): clients/typescript/package.json clients/typescript/package-lock.json
	cd clients/typescript && npm ci --loglevel=error
	touch $@

$(SUITES)/%/.installed: clients/typescript/suites/%/package-lock.json
	mkdir -p $(@D)
	cp $(<D)/package.json $(<D)/package-lock.json $(<D)/.npmrc $(@D)
	cd $(@D) && npm ci --loglevel=error
	touch $@

$(PYTHON_SUITES:%=$(SUITES)/%/.installed): $(SUITES)/%/.installed: requirements/%.txt clients/python/pyproject.toml
	tools/create_venv.sh $(@D)
	$(@D)/bin/python $(PIP) install --require-hashes -r $<
	$(@D)/bin/python $(PIP) install --no-deps --no-build-isolation --editable clients/python
	touch $@

.cache/bench/.installed: requirements/benchmarks.txt
	tools/create_venv.sh .cache/bench
	.cache/bench/bin/python $(PIP) install --require-hashes -r $<
	touch $@

.cache/generate/.installed: requirements/generate.txt
	tools/create_venv.sh .cache/generate
	.cache/generate/bin/python $(PIP) install --require-hashes -r $<
	touch $@

.cache/deploy/.installed: requirements/deploy.txt
	tools/create_venv.sh .cache/deploy
	.cache/deploy/bin/python $(PIP) install --require-hashes -r $<
	touch $@

# atheris joins the server's packages, which it fuzzes.
.cache/fuzz/.installed: requirements/fuzz.txt $(VENV)/.requirements
	$(BIN)/python $(PIP) install --require-hashes -r $<
	$(CARGO) install cargo-fuzz --version 0.13.2 --locked --quiet --root .cache/fuzz
	touch $@
