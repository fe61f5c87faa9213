package transfer

import (
	"fmt"
	"io"
	"os"

	"likewise/internal/durable"
	"likewise/internal/like"
)

// writeFile is [durable.WriteFile] in the place of nothing or of a regular file;
// anything else of that name (a device, a directory) is refused.
func writeFile(path string, write func(w io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s exists and is not a regular file", like.ErrInvalid, path)
	}
	return durable.WriteFile(path, write)
}
