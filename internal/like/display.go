package like

import "strconv"

// Display returns the short form of a count: the integer below 1,000, else one
// decimal with a unit, rounded half up and without a trailing ".0": 999, 1K,
// 999.9K, 1M, 2.1B, 3T. The unit is chosen after rounding, so 999,950 is 1M and
// never 1000K. A negative count, which no ledger returns, is shown as 0.
func Display(count int64) string {
	if count < 1000 {
		return strconv.FormatInt(max(count, 0), 10)
	}
	n := uint64(count)
	units := "KMBT"
	for k, size := 0, uint64(1000); ; k, size = k+1, size*1000 {
		tenths := (n + size/20) / (size / 10)
		if tenths < 10000 || k == len(units)-1 {
			return formatTenths(tenths) + units[k:k+1]
		}
	}
}

func formatTenths(tenths uint64) string {
	s := strconv.FormatUint(tenths/10, 10)
	if d := tenths % 10; d != 0 {
		s += "." + strconv.FormatUint(d, 10)
	}
	return s
}
