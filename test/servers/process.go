package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

var errPortTaken = errors.New("the port is taken")

// process is one server program, over any number of starts. It has no goroutine:
// whether it runs is asked of the system.
type process struct {
	name string
	dir  string // where it works, with its log; the script down knows it by that
	user string // whom it runs as; empty: as this process
	argv []string
	cmd  *exec.Cmd // nil while it does not run
}

func (p *process) logFile() string { return filepath.Join(p.dir, "log") }

// start starts the program, and waits until ready reports that it answers and is
// this one. An error of ready means not yet.
func (p *process) start(ctx context.Context, ready func(context.Context) error) error {
	if p.cmd != nil {
		return fmt.Errorf("start %s: it runs already", p.name)
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = detached(p.user)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd = cmd
	if err := p.waitReady(ctx, ready); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w\n%s", p.name, err, p.logTail()), p.kill(context.WithoutCancel(ctx)))
	}
	return nil
}

func (p *process) waitReady(ctx context.Context, ready func(context.Context) error) error {
	return poll(ctx, func(ctx context.Context) error {
		if !ended(p.cmd.Process.Pid) {
			return ready(ctx)
		}
		if strings.Contains(p.logTail(), "ddress already in use") {
			return &givenUp{errPortTaken}
		}
		return &givenUp{errors.New("the program ended before it was ready")}
	})
}

// quit sends a signal that ends the program, frozen or not, and waits until it is
// gone.
func (p *process) quit(ctx context.Context, sig syscall.Signal) error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	if err := errors.Join(p.thaw(), waitEnded(ctx, p.cmd.Process.Pid)); err != nil {
		return fmt.Errorf("stop %s: %w\n%s", p.name, err, p.logTail())
	}
	_ = p.cmd.Wait() // it was ended by a signal: that is no news
	p.cmd = nil
	return nil
}

// kill ends the program and its children at once, as a power loss would.
func (p *process) kill(ctx context.Context) error {
	if p.cmd == nil {
		return nil
	}
	children, err := p.freeze() // so that no child is born meanwhile
	for _, pid := range children {
		err = errors.Join(err, send(pid, syscall.SIGKILL))
	}
	err = errors.Join(err, p.quit(ctx, syscall.SIGKILL))
	return errors.Join(err, waitEnded(ctx, children...))
}

// freeze halts the program and its children, and returns the children.
func (p *process) freeze() ([]int, error) {
	if p.cmd == nil {
		return nil, fmt.Errorf("freeze %s: it does not run", p.name)
	}
	err := send(p.cmd.Process.Pid, sigstop)
	children := childrenOf(p.cmd.Process.Pid)
	for _, pid := range children {
		err = errors.Join(err, send(pid, sigstop))
	}
	return children, err
}

// thaw lets a frozen program and its children go on.
func (p *process) thaw() error {
	if p.cmd == nil {
		return fmt.Errorf("thaw %s: it does not run", p.name)
	}
	var err error
	for _, pid := range append(childrenOf(p.cmd.Process.Pid), p.cmd.Process.Pid) {
		err = errors.Join(err, send(pid, sigcont))
	}
	return err
}

// send signals a process; one that is gone already is no error.
func send(pid int, sig syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(sig)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send signal %v to process %d: %w", sig, pid, err)
	}
	return nil
}

func waitEnded(ctx context.Context, pids ...int) error {
	return poll(ctx, func(ctx context.Context) error {
		for _, pid := range pids {
			if !ended(pid) {
				return fmt.Errorf("process %d still runs", pid)
			}
		}
		return nil
	})
}

func (p *process) logTail() string {
	b, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4<<10):])
}
