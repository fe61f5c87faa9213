package server

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"likewise/internal/config"
)

// Greet tells a person at a terminal where the server is and what to try. program
// is how the program was called.
func (s *Server) Greet(w io.Writer, cfg config.Config, program string) {
	public, admin := s.Addresses()
	operators := localURL(admin)
	if s.public == nil {
		fmt.Fprintf(w, "likewise is running as %s.\n\n  admin  %s  (/console/, /metrics, /readyz)\n  data   %s\n\nCtrl-C stops it.\n\n", cfg.Role, operators, dataOf(cfg))
		return
	}
	api := localURL(public)
	fmt.Fprintf(w, "likewise is serving.\n\n  API    %s\n  admin  %s  (/console/, /metrics, /readyz)\n  data   %s\n\n", api, operators, dataOf(cfg))
	if key := cmp.Or(cfg.JWT.SecretFile, cfg.JWKS); key != "" {
		fmt.Fprintf(w, "Tokens are checked with %s. With one in $TOKEN, like something:\n\n", key)
	} else {
		flags := ""
		if cfg.DataDir != config.DefaultConfig().DataDir {
			flags = " --data-dir " + cfg.DataDir
		}
		fmt.Fprintf(w, "Like something as alice, from another terminal:\n\n  TOKEN=$(%s token alice%s)\n", program, flags)
	}
	fmt.Fprintf(w, "  curl -X PUT -H \"Authorization: Bearer $TOKEN\" %s/v1/posts/42/like\n\nCtrl-C stops it.\n\n", api)
}

// dataOf says where likes are kept, without passwords.
func dataOf(cfg config.Config) string {
	if !cfg.Embedded() {
		return cfg.Ledger.String()
	}
	if dir, err := filepath.Abs(cfg.DataDir); err == nil {
		return dir
	}
	return cfg.DataDir
}

// GreetDemo is Greet for a demo.
func (s *Server) GreetDemo(w io.Writer, cfg config.Config, program string) {
	public, admin := s.Addresses()
	fmt.Fprintf(w, "The likewise demo is running. Its likes are thrown away when it stops.\n\n  page     %s/\n  console  %s/console/\n\n"+
		"The console asks for a token:\n\n  %s token operator --scope likes:admin --data-dir %s\n\nCtrl-C stops it.\n\n",
		localURL(public), localURL(admin), program, cfg.DataDir)
}
