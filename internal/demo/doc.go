// Package demo is what `likewise demo` adds to a server: a page with a feed, a
// crowd that likes it, and visitors without an account.
//
// The crowd is made up. It writes through the ledger like a trusted backend, with
// users of its own, and no limit of a visitor applies to it. A visitor gets a name
// by chance and a signed token for it, kept in a cookie.
//
// The package must never be part of a server that keeps real likes: whoever
// reaches it may like as a visitor and set the crowd's rate. Only the demo command
// asks for it.
package demo
