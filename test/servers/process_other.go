//go:build !linux

package servers

import "syscall"

const (
	sigstop = syscall.Signal(19)
	sigcont = syscall.Signal(18)
)

func supported(server string) error {
	return &absentError{server, server + " is started for tests on Linux only"}
}

func detached(string) *syscall.SysProcAttr      { return nil }
func idsOf(string) (uid, gid uint32, err error) { return 0, 0, nil }
func ended(int) bool                            { return true }
func childrenOf(int) []int                      { return nil }
