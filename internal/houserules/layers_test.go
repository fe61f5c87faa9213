package houserules

import (
	"fmt"
	"slices"
	"strings"
)

const module = "likewise/"

const (
	like    = "internal/like"
	ledger  = "internal/ledger"
	store   = "internal/ledger/pebble"
	shared  = "internal/ledger/postgres"
	memory  = "internal/ledger/memory"
	suite   = "internal/ledger/conformance"
	durable = "internal/durable"
	harness = "test/harness"
	servers = "test/servers"
)

// layers says which packages of the module a package may import. Imports point one
// way: like <- ledger <- {counts, reconcile, …} <- httpapi <- server <- cmd.
var layers = map[string][]string{
	like:   {},
	ledger: {like},
	suite:  {like, ledger, memory}, // memory is the oracle of the random runs
	memory: {like, ledger},
	store:  {like, ledger},
	shared: {like, ledger},

	durable:            {},
	"internal/auth":    {like, durable},
	"internal/config":  {like},
	"internal/limit":   {like},
	"internal/observe": {like},

	"internal/console":   {like, ledger, "internal/hot", "internal/reconcile"},
	"internal/counts":    {like, ledger},
	"internal/demo":      {like, ledger, "internal/limit", "web"},
	"internal/hot":       {like, ledger},
	"internal/live":      {like, ledger},
	"internal/mirror":    {like, ledger},
	"internal/move":      {like, ledger},
	"internal/reconcile": {like, ledger},
	"internal/redis":     {like, ledger, "internal/limit"},
	"internal/transfer":  {like, ledger, durable},

	"internal/httpapi": {like, ledger, "internal/auth", "internal/console", "internal/counts", "internal/limit", "internal/live", "internal/observe", "internal/reconcile"},
	"internal/server": {
		like, ledger, store, shared, durable, "internal/auth", "internal/config", "internal/console", "internal/counts", "internal/demo", "internal/hot", "internal/httpapi",
		"internal/limit", "internal/live", "internal/mirror", "internal/move", "internal/observe", "internal/reconcile", "internal/redis", "internal/transfer", "web",
	},
	"cmd/likewise": {
		like, ledger, "internal/auth", "internal/config", "internal/demo", "internal/limit", "internal/move", "internal/observe",
		"internal/reconcile", "internal/server", "internal/transfer",
	},

	"client":              {},
	"internal/houserules": {},
	"web":                 {},
	"bench/load":          {},
	"bench/nodes":         {harness, servers},
	harness:               {},
	"test/clockahead":     {"internal/config", "internal/observe", "internal/server"},
	"test/crash":          {},
	"test/deploy":         {harness, servers},
	"test/footprint":      {},
	"test/linearizable":   {shared},
	"test/metamorphic":    {store, shared, "internal/counts", "internal/redis"},
	"test/move":           {harness, servers},
	"test/overload":       {},
	"test/nodes":          {},
	"test/realdata":       {},
	"test/scenarios":      {harness, servers},
	servers:               {harness},
	"test/servers/cmd":    {servers},
}

// forTests may be imported by every test besides what its package may.
var forTests = []string{like, ledger, memory, suite, harness, servers}

// testsOf lists what the tests of a package may import besides: the client is
// tested against the real API, and imports none of it.
var testsOf = map[string][]string{
	"client":           {"internal/auth", "internal/counts", "internal/httpapi", "internal/live"},
	"internal/httpapi": {"internal/hot"},
	"internal/move":    {store, shared, servers},
	"internal/redis":   {"internal/counts"},
}

// standardOnly packages import nothing from outside the standard library.
var standardOnly = []string{like, ledger, durable, "client"}

// owners says where a technology lives: one technology, one package. Tests and the
// black-box tools are free.
var owners = map[string][]string{
	"github.com/cockroachdb/pebble/": {store},
	"github.com/coder/websocket/":    {"internal/live"},
	"github.com/golang-jwt/":         {"internal/auth"},
	"github.com/MicahParks/":         {"internal/auth"},
	"github.com/jackc/pgx/":          {shared, "internal/mirror"},
	"github.com/redis/rueidis":       {"internal/redis"},
	"github.com/spf13/cobra":         {"cmd"},
	"go.opentelemetry.io/":           {"internal/observe"},
	"go.yaml.in/":                    {"internal/config", "internal/httpapi"},
}

func checkLayers(files []file) []string {
	var found []string
	unknown := map[string]bool{}
	for _, f := range files {
		may, known := layers[f.dir]
		if !known && !unknown[f.dir] {
			unknown[f.dir] = true
			found = append(found, fmt.Sprintf("%s: the package is in no layer; add its row to the table in internal/houserules/layers_test.go and to ARCHITECTURE.md", f.dir))
		}
		for _, imported := range f.importPaths() {
			target, own := strings.CutPrefix(imported, module)
			switch {
			case own && (target == f.dir || slices.Contains(may, target) || f.test && slices.Contains(slices.Concat(testsOf[f.dir], forTests), target)):
			case own && known:
				found = append(found, fmt.Sprintf("%s: %s may not import %s; imports point one way, so move the code down, or take an interface and let internal/server connect the two",
					f.name, f.dir, target))
			case !own && strings.Contains(imported, ".") && slices.Contains(standardOnly, f.dir) && !f.test:
				found = append(found, fmt.Sprintf("%s: %s keeps to the standard library; do what needs %s in a package above it", f.name, f.dir, imported))
			case !own:
				if place := trespass(f, imported); place != "" {
					found = append(found, fmt.Sprintf("%s: %s belongs to %s; call that package instead", f.name, imported, place))
				}
			}
		}
	}
	return found
}

// trespass names the package that should be called instead of importing path.
func trespass(f file, path string) string {
	for prefix, dirs := range owners {
		if strings.HasPrefix(path+"/", prefix) && !f.test && !f.within(dirs...) && !f.within("test", "bench") {
			return strings.Join(dirs, " or ")
		}
	}
	return ""
}
