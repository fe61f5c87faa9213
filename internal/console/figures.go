package console

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// figures is what the metrics say at one moment, by name.
type figures map[string]*dto.MetricFamily

func gather(g prometheus.Gatherer) (figures, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	m := figures{}
	for _, f := range families {
		m[f.GetName()] = f
	}
	return m, nil
}

// condition selects metrics by their labels.
type condition func(labels map[string]string) bool

func has(label string, values ...string) condition {
	return func(labels map[string]string) bool { return slices.Contains(values, labels[label]) }
}

// each gives the metrics of a name that meet every condition.
func (m figures) each(name string, conditions []condition, see func(*dto.Metric)) {
	for _, metric := range m[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if !slices.ContainsFunc(conditions, func(meets condition) bool { return !meets(labels) }) {
			see(metric)
		}
	}
}

// sum adds counters and gauges; what is not there is 0.
func (m figures) sum(name string, conditions ...condition) (sum float64) {
	m.each(name, conditions, func(metric *dto.Metric) {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	})
	return sum
}

const (
	requestSeconds = "likewise_http_request_seconds"
	commitSeconds  = "likewise_commit_wait_seconds"
)

// isWrite is the routes of likes and unlikes.
func isWrite(labels map[string]string) bool {
	method, path, _ := strings.Cut(labels["route"], " ")
	return path == "/v1/{collection}/{id}/like" && (method == "PUT" || method == "DELETE")
}

// isRefusal is the public API's answers of 4xx.
func isRefusal(labels map[string]string) bool {
	return labels["api"] == "public" && strings.HasPrefix(labels["code"], "4")
}

// bucket counts the observations up to a bound.
type bucket struct {
	bound float64 // +Inf in the last
	count float64 // those of all buckets before included
}

// histogram adds the buckets of metrics that have the same bounds.
func (m figures) histogram(name string, conditions ...condition) (sum []bucket) {
	m.each(name, conditions, func(metric *dto.Metric) {
		h := metric.GetHistogram()
		if sum == nil {
			sum = make([]bucket, len(h.GetBucket())+1)
			sum[len(sum)-1].bound = math.Inf(1)
		}
		for i, b := range h.GetBucket() {
			sum[i].bound = b.GetUpperBound()
			sum[i].count += float64(b.GetCumulativeCount())
		}
		sum[len(sum)-1].count += float64(h.GetSampleCount())
	})
	return sum
}

// observations is how many there are in all.
func observations(buckets []bucket) float64 {
	if len(buckets) == 0 {
		return 0
	}
	return buckets[len(buckets)-1].count
}

// quantile estimates the value below which a share q of the observations lies, as
// if those of one bucket were spread evenly. It is 0 without an observation.
func quantile(q float64, buckets []bucket) float64 {
	all := observations(buckets)
	if all == 0 {
		return 0
	}
	rank := q * all
	i, _ := slices.BinarySearchFunc(buckets, rank, func(b bucket, rank float64) int {
		if b.count < rank {
			return -1
		}
		return 1
	})
	var before bucket
	if i > 0 {
		before = buckets[i-1]
	}
	if math.IsInf(buckets[i].bound, 1) {
		return before.bound // all that is known: it is more than that
	}
	share := (rank - before.count) / (buckets[i].count - before.count)
	return before.bound + share*(buckets[i].bound-before.bound)
}

const (
	windowLength = 10 * time.Second
	windowStep   = 500 * time.Millisecond // between two looks that are kept
)

// window remembers the looks of the last ten seconds at a histogram that only grows.
type window struct {
	mu    sync.Mutex
	looks []look // guarded by mu; the oldest first
}

type look struct {
	at      time.Time
	buckets []bucket
}

// recent returns what was observed since the oldest look of the last ten seconds;
// without one, since the process started.
func (w *window) recent(now time.Time, buckets []bucket) []bucket {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = slices.DeleteFunc(w.looks, func(l look) bool { return now.Sub(l.at) > windowLength })
	recent := slices.Clone(buckets)
	if len(w.looks) > 0 {
		for i, b := range w.looks[0].buckets {
			recent[i].count -= b.count
		}
	}
	if len(w.looks) == 0 || now.Sub(w.looks[len(w.looks)-1].at) >= windowStep {
		w.looks = append(w.looks, look{now, buckets})
	}
	return recent
}
