package redis

import (
	"math/bits"
	"strconv"
	"strings"
)

// The slots of a Redis Cluster are looked at in segments of equal size. There is
// one channel of the bus for each, and a breaker.
const (
	segments    = 16
	segmentBits = 10 // a slot has 14 bits
)

// segmentOf returns the segment of the slot that a Redis Cluster gives to a key: of
// what is between the first brace and the next closing one, if that is not empty,
// or else of the whole (Redis Cluster specification, "Hash tags").
func segmentOf(key string) int {
	if _, behind, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(behind, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) & 0x3fff >> segmentBits
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, no reflection, from 0.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// tags has a hash tag of each segment, the same on all nodes.
var tags = func() (tags [segments]string) {
	for n, left := 0, segments; left > 0; n++ {
		tag := "{" + strconv.Itoa(n) + "}"
		if s := segmentOf(tag); tags[s] == "" {
			tags[s] = tag
			left--
		}
	}
	return tags
}()

// set is a set of segments, one bit each.
type set uint16

func (s set) has(segment int) bool { return s&(1<<segment) != 0 }
func (s *set) add(segment int)     { *s |= 1 << segment }
func (s set) size() int            { return bits.OnesCount16(uint16(s)) }
