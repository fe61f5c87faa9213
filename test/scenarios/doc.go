// Package scenarios replays faults that people met in running like, vote and
// favourite counters, as black-box tests with the exact right value. An id (B01
// and so on) names one such report and stays with it.
//
// It is one suite for every deployment: [Run] takes a [Deployment], which starts
// whatever answers the HTTP API, one node or several, and hands back a [Target]
// with base URLs and, when the processes are ours, the means to stop and kill
// them. A scenario asks for what it needs; where a deployment does not offer it,
// the scenario is skipped with a line that says so.
//
// After each scenario the suite checks for every user and item that was touched:
// count on each node = length of the walked liker list = own state of each user = what was
// acknowledged, no 5xx unless a fault was injected, and no drift.
//
// By default rounds are few, so that the whole suite runs in seconds; with
// LIKEWISE_HEAVY=1 they are those of the list, and nothing may be skipped that
// the machine can offer. Two nodes play all scenarios then, with few rounds.
package scenarios
