// Package nodes measures two nodes over one PostgreSQL and one Redis, as processes
// that are spoken to over HTTP, beside what a program without likewise would do.
// It has benchmarks only:
//
//	go test ./bench/nodes -run '^$' -bench . -benchtime 5x
package nodes
