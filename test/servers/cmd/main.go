// Command cmd starts servers for people, as test/servers does for tests. It never
// stops or changes one: test/servers/down does that.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"likewise/test/servers"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kinds []string) error {
	if len(kinds) == 0 {
		return fmt.Errorf("usage: test/servers/up server ...\nservers: %s", strings.Join(servers.Kinds, ", "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := filepath.Abs(cmp.Or(os.Getenv("IT_DIR"), filepath.Join(os.TempDir(), "likewise-servers")))
	if err != nil {
		return err
	}
	env, err := servers.Up(ctx, dir, kinds...)
	for _, line := range env {
		fmt.Println(line)
	}
	return err
}
