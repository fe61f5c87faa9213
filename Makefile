# Shortcuts only: what each does is in .ci/run, so that there is one place to read.
.DEFAULT_GOAL := build
.PHONY: help build test lint fuzz bench cross docs ci

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

build: ## build ./likewise for this machine
	CGO_ENABLED=0 go build -trimpath -o likewise ./cmd/likewise

test: ## the fast tests
	go test ./...

lint: ## vet, formatting, staticcheck, module files
	.ci/run lint modules

fuzz: ## every fuzz target for a few seconds
	.ci/run fuzz

bench: ## every benchmark, properly timed
	go test -run '^$$' -bench . -benchmem ./...

cross: ## all six platforms, and the size limit
	.ci/run cross

docs: ## rewrite the generated references
	go test ./internal/config ./internal/server -update

ci: ## everything that decides whether a change lands
	.ci/run
