package server

import "likewise/internal/config"

// duties is what a process does of the whole service.
type duties struct {
	serve bool // users, on the public listener
	drain bool // bring totals up to date, and copy them to where they are mirrored
	audit bool // in the background
}

// dutiesOf are those of the configured role.
func dutiesOf(cfg config.Config) duties {
	switch cfg.Role {
	case "api":
		return duties{serve: true}
	case "aggregator":
		return duties{drain: true}
	case "reconciler":
		return duties{audit: true}
	}
	return duties{serve: true, drain: true, audit: true}
}
