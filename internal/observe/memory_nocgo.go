//go:build !cgo

package observe

// Without cgo the caches and write buffers of the store are part of the Go heap.
const storeOffHeap = false
