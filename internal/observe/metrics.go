package observe

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Registry is a Prometheus registry that can also describe itself for people.
// Packages take it as a prometheus.Registerer.
type Registry struct {
	*prometheus.Registry
	mu      sync.Mutex
	vectors map[string]string // guarded by mu: type by name; a vector without values shows none
}

// NewRegistry returns a registry with the metrics of the Go runtime, of the
// process and of the build.
func NewRegistry(b Build) *Registry {
	r := &Registry{Registry: prometheus.NewRegistry(), vectors: map[string]string{}}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "likewise_build_info",
		Help:        "Always 1; the labels say which build is running.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go},
	})
	info.Set(1)
	r.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Register adds a collector; see prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	if err := r.Registry.Register(c); err != nil {
		return err
	}
	var kind string
	switch c.(type) {
	case *prometheus.CounterVec:
		kind = "counter"
	case *prometheus.GaugeVec:
		kind = "gauge"
	case *prometheus.HistogramVec:
		kind = "histogram"
	default:
		return nil // has a value from the start
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range describe(c) {
		r.vectors[d.name] = kind
	}
	return nil
}

// MustRegister adds collectors and panics when one cannot be added.
func (r *Registry) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Markdown renders the table of all metrics of the program, sorted by name, for
// docs/metrics.md. Those that every Go program has are left out.
func (r *Registry) Markdown() (string, error) {
	families, err := r.Gather()
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	kinds := maps.Clone(r.vectors)
	r.mu.Unlock()
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	all := describe(r.Registry)
	slices.SortFunc(all, func(a, b description) int { return strings.Compare(a.name, b.name) })
	// One metric may be registered several times, with another constant label each.
	all = slices.CompactFunc(all, func(a, b description) bool { return a.name == b.name })
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range all {
		if !strings.HasPrefix(d.name, "likewise_") {
			continue
		}
		kind, ok := kinds[d.name]
		if !ok {
			return "", fmt.Errorf("metric %s has no value yet and is no vector, so that its type is unknown", d.name)
		}
		labels := "–"
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, kind, labels, strings.ReplaceAll(d.help, "|", "\\|"))
	}
	return b.String(), nil
}

type description struct {
	name, help string
	labels     []string
}

var (
	descText  = regexp.MustCompile(`fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	labelName = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

// describe reads the descriptions of c. A prometheus.Desc shows its parts only in
// its text.
func describe(c prometheus.Collector) []description {
	ch := make(chan *prometheus.Desc)
	var wg sync.WaitGroup
	wg.Go(func() { defer close(ch); c.Describe(ch) })
	var all []description
	for desc := range ch {
		m := descText.FindStringSubmatch(desc.String())
		if m == nil {
			panic("observe: the text of a prometheus.Desc has a new form: " + desc.String())
		}
		d := description{}
		d.name, _ = strconv.Unquote(m[1])
		d.help, _ = strconv.Unquote(m[2])
		for _, label := range labelName.FindAllStringSubmatch(m[3], -1) {
			d.labels = append(d.labels, label[1])
		}
		if m[4] != "" {
			d.labels = append(d.labels, strings.Split(m[4], ",")...)
		}
		all = append(all, d)
	}
	wg.Wait()
	return all
}
