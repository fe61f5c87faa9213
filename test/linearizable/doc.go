// Package linearizable checks that a like is one register for each user and item,
// whichever of several nodes is asked, and whatever breaks meanwhile.
//
//	clients of one user ──► any of three nodes ──► one database
//	       │                                          │
//	       └── history: called, answered, what was seen
//	                      │
//	                porcupine, for each pair
//
// A history is what four devices of one user did and were told. It is split by item,
// and each part must have an order of its operations that agrees with real time and in
// which every answer is right (Herlihy and Wing 1990). Since devices go from node to
// node, that includes that a session reads its own writes. A command that failed or
// was not answered may take effect once, at any time after its call, or never.
//
// Nodes are ledgers in this process and, under the full sizes, processes of the
// program. Their connections break, also at COMMIT, the database stops without a
// checkpoint, and nodes are killed; a test fails when one of its faults did not
// happen. Mutants show what the check notices.
//
// LIKEWISE_SEED repeats the choices of an earlier run (not its timing).
package linearizable
