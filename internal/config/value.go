package config

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. It is written as a number with an optional unit B, KiB, MiB,
// GiB, TiB or PiB.
type Bytes int64

var byteUnits = []struct {
	name string
	size int64
}{{"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes b with the largest unit that leaves it whole.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.size == 0 && u.size > 1 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalText reads what String writes.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, size := string(text), int64(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, size = rest, u.size
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return errors.New("must be a size such as 16KiB, 64MiB or a number of bytes")
	}
	*b = Bytes(n * size)
	return nil
}

// kindOf names the notation of a field's type; leaf is false for a section.
func kindOf(t reflect.Type) (kind string, leaf bool) {
	switch reflect.New(t).Interface().(type) {
	case *time.Duration:
		return "duration", true
	case *Bytes:
		return "size", true
	case *[]string, *[]netip.Prefix:
		return "list", true
	case *URL:
		return "URL", true
	case *URLs:
		return "URLs", true
	case *MirrorTables:
		return tables, true
	case encoding.TextUnmarshaler:
		return "word", true
	}
	switch t.Kind() {
	case reflect.String:
		return "string", true
	case reflect.Bool:
		return "bool", true
	case reflect.Int:
		return "int", true
	case reflect.Float64:
		return "number", true
	}
	return "", false
}

// parse sets the value that field points to from its text. Lists are separated
// by commas. The error says what is accepted and does not repeat the text.
func parse(field any, text string) error {
	var err error
	switch p := field.(type) {
	case *string:
		*p = text
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return errors.New("must be true or false")
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return errors.New("must be a whole number")
		}
	case *float64:
		*p, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(*p) || math.IsInf(*p, 0) {
			return errors.New("must be a number")
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			return errors.New("must be a duration with a unit, such as 500ms, 5s or 2m")
		}
	case *[]string:
		*p = splitList(text)
	case *URL:
		*p = URL(strings.TrimSpace(text))
	case *URLs:
		*p = splitURLs(text)
	case *MirrorTables:
		*p, err = parseTables(text)
	case *[]netip.Prefix:
		*p, err = parsePrefixes(text)
	case encoding.TextUnmarshaler:
		err = p.UnmarshalText([]byte(text))
	default:
		panic(fmt.Sprintf("config: no notation for %T", field))
	}
	return err
}

// format is the inverse of parse.
func format(field any) string {
	switch p := field.(type) {
	case *[]string:
		return strings.Join(*p, ",")
	case *URL:
		return string(*p)
	case *MirrorTables:
		return p.text(func(u URL) string { return string(u) })
	case *URLs:
		texts := make([]string, len(*p))
		for i, one := range *p {
			texts[i] = string(one)
		}
		return strings.Join(texts, ",")
	case *[]netip.Prefix:
		texts := make([]string, len(*p))
		for i, prefix := range *p {
			texts[i] = prefix.String()
		}
		return strings.Join(texts, ",")
	case *float64:
		return strconv.FormatFloat(*p, 'f', -1, 64)
	case *time.Duration:
		text := p.String() // 2m0s is written 2m, and 1h0m0s 1h
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	case *slog.Level:
		return strings.ToLower(p.String())
	}
	return fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
}

func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func parsePrefixes(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, part := range splitList(text) {
		prefix, err := netip.ParsePrefix(part)
		if addr, errAddr := netip.ParseAddr(part); errAddr == nil {
			addr = addr.Unmap().WithZone("")
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("must list networks such as 10.0.0.0/8 or addresses, and %q is neither", part)
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}
