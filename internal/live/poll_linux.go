package live

import (
	"os"
	"sync"
	"syscall"
)

// poller tells sinks that their peer has left, or that their socket takes more. It
// is an epoll of its own, which the runtime's poller watches, so that waiting for
// it takes no thread.
type poller struct {
	file *os.File
	raw  syscall.RawConn
	fd   int

	mu    sync.Mutex
	sinks map[pollKey]*bare
	count int32
}

// pollKey tells a connection from a later one with the same descriptor.
type pollKey struct{ fd, count int32 }

// poll returns the hub's poller and starts it when it is needed first.
func (h *Hub) poll() (*poller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return nil, errEnded
	case h.poller != nil:
		return h.poller, nil
	}
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	h.poller = p
	h.own.Go(p.loop)
	return p, nil
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	_ = syscall.SetNonblock(fd, true) // what makes os.NewFile give it to the runtime
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &poller{file: file, raw: raw, fd: fd, sinks: map[pollKey]*bare{}}, nil
}

func (p *poller) close() { _ = p.file.Close() }

// add watches the connection of a sink, whose lock the caller holds.
func (p *poller) add(s *bare) (key pollKey, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	failed := s.raw.Control(func(fd uintptr) {
		key = pollKey{int32(fd), p.count}
		p.sinks[key] = s
		err = p.control(syscall.EPOLL_CTL_ADD, key, false)
	})
	if failed != nil {
		err = failed
	}
	if err != nil {
		delete(p.sinks, key)
	}
	return key, err
}

// arm says whether a sink waits for its socket to take more.
func (p *poller) arm(s *bare, out bool) {
	_ = s.raw.Control(func(uintptr) { _ = p.control(syscall.EPOLL_CTL_MOD, s.key, out) })
}

// remove forgets a connection that is about to be closed.
func (p *poller) remove(key pollKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sinks, key)
}

func (p *poller) control(op int, key pollKey, out bool) error {
	event := syscall.EpollEvent{Events: syscall.EPOLLRDHUP, Fd: key.fd, Pad: key.count}
	if out {
		event.Events |= syscall.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(p.fd, op, int(key.fd), &event))
}

// loop serves until the poller is closed.
func (p *poller) loop() {
	var events [128]syscall.EpollEvent
	for {
		n, err := p.wait(events[:])
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			p.mu.Lock()
			s := p.sinks[pollKey{e.Fd, e.Pad}]
			p.mu.Unlock()
			switch {
			case s == nil:
			case e.Events&(syscall.EPOLLRDHUP|syscall.EPOLLHUP|syscall.EPOLLERR) != 0:
				s.stop()
			default:
				s.writable()
			}
		}
	}
}

func (p *poller) wait(events []syscall.EpollEvent) (n int, err error) {
	failed := p.raw.Read(func(fd uintptr) bool {
		n, err = syscall.EpollWait(int(fd), events, 0)
		if err == syscall.EINTR {
			n, err = 0, nil
		}
		return n > 0 || err != nil
	})
	if failed != nil {
		return 0, failed
	}
	return n, os.NewSyscallError("epoll_wait", err)
}
