//go:build !linux

package live

import (
	"fmt"
	"net/http"

	"likewise/internal/like"
)

// bareStreams says whether streams without a goroutine exist on this system.
const bareStreams = false

func (h *Hub) streamBare(http.ResponseWriter, *http.Request, Viewer, []like.Item) error {
	return fmt.Errorf("%w: streams without a goroutine", like.ErrInvalid)
}

type poller struct{}

func (*poller) close() {}
