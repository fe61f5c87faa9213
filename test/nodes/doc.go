// Package nodes drills what only several nodes can get wrong, with the real program,
// PostgreSQL and Redis: races between nodes, live numbers across nodes, storms of
// clients that come back, and what a node does while one of the servers is gone.
//
// Crashes under load are drilled in test/crash, and single faults with their exact
// values in test/scenarios.
package nodes
