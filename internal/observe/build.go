package observe

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Build says which build of the program is running.
type Build struct {
	Version  string // of the release, or of the module
	Revision string // of the source, "" when it was not recorded
	Go       string // that compiled it
}

// ReadBuild reads what the linker recorded. A version that is not empty replaces
// the recorded one.
func ReadBuild(version string) Build {
	b := Build{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}
