//go:build cgo

package observe

// With cgo the store allocates its caches and write buffers outside the Go heap.
const storeOffHeap = true
