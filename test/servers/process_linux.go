package servers

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

const (
	sigstop = syscall.SIGSTOP
	sigcont = syscall.SIGCONT
)

// supported returns why no server can be started on this system, or nil.
func supported(string) error { return nil }

// detached gives a process a session of its own, so that an interrupt at the
// terminal does not reach it, and optionally another user.
func detached(as string) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if uid, gid, err := idsOf(as); err == nil {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return attr
}

// idsOf returns the ids of a user; the empty name has none.
func idsOf(name string) (uid, gid uint32, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), err
}

// stat returns the state of a process and its parent; a process that is gone has
// the state X.
func stat(pid int) (state byte, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 'X', 0
	}
	// pid (name) state parent …: the name may hold anything, also brackets.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	parent, _ = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent
}

// ended reports whether a process has ended, also when nobody waited for it yet.
func ended(pid int) bool {
	state, _ := stat(pid)
	return state == 'X' || state == 'Z'
}

func childrenOf(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	var children []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if state, parent := stat(child); parent == pid && state != 'Z' {
			children = append(children, child)
		}
	}
	return children
}
