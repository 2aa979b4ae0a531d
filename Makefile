# The developer tools are tool lines of go.mod and of .ci/lint/go.mod.

GOLANGCI := go tool -modfile=.ci/lint/go.mod golangci-lint
MUTATE := go tool -modfile=.ci/mutate/go.mod gremlins unleash --workers 2 --timeout-coefficient 10 --invert-logical --invert-loopctrl --output-statuses lct
# All of domain but its texts, which are covered by the specs.
JUDGED_BY_OWN_TESTS := '(^|/)(anchor|call|date|fingerprint|manifest|marker|message|prefix|prompt|sequence|stamp|tag|tool_order|window|zone)\.go$$'
FUZZTIME ?= 10s
BENCHTIME ?= 20x
ROWS ?= 3000000
SESSIONS ?= 20000

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: check
check: verify lint boundaries test race ## all that CI runs, but for the fuzzing

.PHONY: test
test: ## run every spec
	go tool ginkgo -r --succinct=false --fail-on-pending --fail-on-empty

.PHONY: race
race: ## run every spec under the race detector, in random order
	go tool ginkgo -r --race --randomize-all --fail-on-pending --fail-on-empty

# Where FUZZTIME is a time, go test now and then takes its end for a failure, and
# says just that. An input that fails is told otherwise.
.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@list=$$(go test -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	echo "$$list" | awk '/^Fuzz/ { targets = targets " " $$1 } /^ok/ { if (targets) print $$2 targets; targets = "" }' | \
	while read -r package targets; do for target in $$targets; do \
		echo "$$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" >"$$log" 2>&1; status=$$?; cat "$$log"; \
		test $$status = 0 || grep -qx '    context deadline exceeded' "$$log" || exit 1; \
	done || exit 1; done

.PHONY: bench
bench: ## compare the hot paths with their bounds, as a table
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) ./test

.PHONY: scale
scale: ## measure the statements on a table of ROWS rows and SESSIONS sessions, as tables
	go test -tags scale -run '^TestScale$$' -count 1 -timeout 2h -v ./test -rows $(ROWS) -sessions $(SESSIONS)

.PHONY: cluster
cluster: ## run the specs on a Galera cluster of three nodes, which it starts and stops
	go tool ginkgo --tags cluster --label-filter cluster --succinct=false --fail-on-pending --fail-on-empty test

.PHONY: mutate
mutate: ## run domain's own tests against mutants of domain, and the specs against mutants of its texts and of app
	$(MUTATE) ./domain
	$(MUTATE) ./domain --integration --coverpkg ./domain/... --tags mutate --exclude-files $(JUDGED_BY_OWN_TESTS)
	$(MUTATE) ./app --integration --coverpkg ./app/... --tags mutate

.PHONY: golden
golden: ## write the golden files anew, to be reviewed like code
	go test ./test -update

.PHONY: generate
generate: ## write wire_gen.go anew
	go tool wire gen .

.PHONY: verify
verify: ## check that what is generated and pinned is up to date
	go mod tidy -diff
	go tool wire diff .
	go vet ./...
	go vet -tags wireinject .
	go vet -tags mutate,scale,cluster ./test

.PHONY: lint
lint: ## run the linter, import boundaries and formatting included
	$(GOLANGCI) run --build-tags mutate,scale,cluster ./...

.PHONY: boundaries
boundaries: ## show that the linter's import boundaries catch what they are for
	.ci/boundaries
