package servers

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// home is the directory below which the servers of one owner have theirs.
type home struct {
	dir   string
	leash io.Closer // holds the watchdog, when there is one

	mu    sync.Mutex
	rooms map[string]int
}

// room makes the directory of one server. Only the user that the server runs as
// can look into it.
func (h *home) room(name string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rooms == nil {
		h.rooms = map[string]int{}
	}
	h.rooms[name]++
	dir := filepath.Join(h.dir, fmt.Sprintf("%s-%d", name, h.rooms[name]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of a server: %w", err)
	}
	return dir, nil
}

// down stops what runs below a directory, and removes it.
//
//go:embed down
var down string

// guarded is the home of the servers of this process.
var guarded = sync.OnceValues(func() (*home, error) {
	dir, err := os.MkdirTemp("", "likewise-servers-")
	if err != nil {
		return nil, fmt.Errorf("make the directory of the servers: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("make the directory of the servers: %w", err)
	}
	leash, err := watch(dir)
	if err != nil {
		return nil, err
	}
	// A server that runs as another user passes through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("open the directory of the servers: %w", err)
	}
	return &home{dir: dir, leash: leash}, nil
})

// watch starts a watchdog that takes down the servers below dir as soon as the
// pipe that it returns is closed. The system does that when this process ends, so
// that servers do not outlive a killed test; and so does the collector when nobody
// holds the pipe.
func watch(dir string) (io.Closer, error) {
	dog := exec.Command("sh", "-c", "cat >/dev/null\n"+down, "down", dir)
	dog.SysProcAttr = detached("")
	dog.Dir = "/"
	pipe, err := dog.StdinPipe()
	if err == nil {
		err = dog.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the watchdog of the servers: %w", err)
	}
	return pipe, nil
}
