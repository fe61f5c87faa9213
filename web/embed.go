// Package web carries the built web files inside the binary and serves them: the
// like button for anybody's page, the page of the demo, and the operator's
// console. What is in dist is made by `npm run build`; this package only hands it
// out, with types, caching and security headers.
//
// The package must never: read files from disk, run a template, or answer
// anything but these files.
package web

import "embed"

//go:embed dist/button dist/demo dist/console
var dist embed.FS
