package observe

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Memory says what the soft limit of the Go heap is made from. Sizes are bytes.
type Memory struct {
	Configured int64 // the limit itself; 0 = from the container's limit
	Store      int64 // caches and write buffers of the store, outside the Go heap in a build with cgo
}

// LimitMemory sets the soft limit of the Go heap and logs how it was found. A
// limit that is set already, by GOMEMLIMIT, stays.
func LimitMemory(m Memory, logger *slog.Logger) {
	m.apply(os.DirFS("/"), logger)
}

func (m Memory) apply(root fs.FS, logger *slog.Logger) {
	if set := debug.SetMemoryLimit(-1); set != math.MaxInt64 {
		logger.Info("memory limit is that of GOMEMLIMIT", "limit_bytes", set)
		return
	}
	if m.Configured > 0 {
		debug.SetMemoryLimit(m.Configured)
		logger.Info("memory limit is the configured one", "limit_bytes", m.Configured)
		return
	}
	container, ok := containerMemory(root)
	if !ok {
		logger.Debug("no memory limit: neither GOMEMLIMIT nor memory_limit nor a container sets one")
		return
	}
	margin, offHeap := container/10, int64(0)
	if storeOffHeap {
		offHeap = m.Store
	}
	// The collector must not be starved by a store that was sized for a larger machine.
	limit := max(container-margin-offHeap, container/4)
	debug.SetMemoryLimit(limit)
	logger.Info("memory limit = container − margin − store outside the Go heap, at least a quarter of the container",
		"limit_bytes", limit, "container_bytes", container, "margin_bytes", margin, "store_bytes", offHeap)
}

// containerMemory is the smallest memory limit of the control groups that the
// process is in; false when there is none.
func containerMemory(root fs.FS) (int64, bool) {
	limit := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if controllers := fields[1]; controllers != "" { // the first version of control groups
			if !slices.Contains(strings.Split(controllers, ","), "memory") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// Inside a container the path is that of the host, and only the root is there.
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			limit = min(limit, readLimit(root, path.Join(mount, dir, file)))
			if dir == "/" {
				break
			}
		}
	}
	// Old kernels write "no limit" as the largest multiple of a page.
	return limit, limit < math.MaxInt64>>1
}

func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64 // "max"
	}
	return n
}
