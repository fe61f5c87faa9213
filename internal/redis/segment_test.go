package redis

import "testing"

func TestSegments(t *testing.T) {
	if got := crc16("123456789"); got != 0x31c3 { // the check value of CRC-16/XMODEM
		t.Errorf("crc16 = %#x, want 0x31c3", got)
	}
	for segment, tag := range tags {
		if got := segmentOf("likewise:bus:1:" + tag); got != segment {
			t.Errorf("tag %s of segment %d is in segment %d", tag, segment, got)
		}
	}
}

// TestSlots compares with the slots that CLUSTER KEYSLOT of Redis 7.0 gives.
func TestSlots(t *testing.T) {
	for key, slot := range map[string]int{
		"a":       15495,
		"{a}b":    15495,
		"x{a}b":   15495,
		"x{}b{c}": 14,
		"{":       4092,
		"}{":      12793,
		"{a":      10276,
		"a}":      5921,
		"{a}{b}":  15495,
		"{{a}}":   10276,
		"ü{ö}":    1050,
	} {
		if got := segmentOf(key); got != slot>>segmentBits {
			t.Errorf("%q is in segment %d, want that of slot %d", key, got, slot)
		}
	}
}
