// Package like is the domain: items, users, commands, facts, totals and the one
// pure function that folds a command into a fact. It imports the standard
// library only, holds no state, starts no goroutine, and every other package
// speaks in its types.
//
// The words (see ARCHITECTURE.md for the promises made with them):
//
//   - a [Command] says that a user likes or unlikes an item;
//   - a [Fact] says that a user likes an item since a [Stamp]; at most one
//     exists per user and item, and facts are the only truth;
//   - [Fold] decides whether a command changes a fact, and by how much (−1, 0 or
//     +1) the number of facts moves;
//   - a [Total] is the number of facts of an item, with a version that only grows.
package like
