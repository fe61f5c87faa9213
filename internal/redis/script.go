package redis

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"

	"github.com/redis/rueidis"
)

var (
	//go:embed set.lua
	setText string
	//go:embed take.lua
	takeText string

	setScript  = newScript(setText)
	takeScript = newScript(takeText)
)

// script is a Lua script that a server knows by its hash, or is told again.
type script struct{ text, hash string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// run is one run of a script.
type run struct {
	key  string
	args []string
}

// exec runs the script once for each of runs, in one round trip, or two where a
// server has lost the script.
func (s script) exec(ctx context.Context, r rueidis.Client, runs ...run) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(runs))
	for i, one := range runs {
		commands[i] = r.B().Evalsha().Sha1(s.hash).Numkeys(1).Key(one.key).Arg(one.args...).Build()
	}
	results := r.DoMulti(ctx, commands...)
	var again []int
	commands = commands[:0]
	for i, result := range results {
		if answer, ok := rueidis.IsRedisErr(result.Error()); ok && answer.IsNoScript() {
			again = append(again, i)
			commands = append(commands, r.B().Eval().Script(s.text).Numkeys(1).Key(runs[i].key).Arg(runs[i].args...).Build())
		}
	}
	if len(again) > 0 {
		for k, result := range r.DoMulti(ctx, commands...) {
			results[again[k]] = result
		}
	}
	return results
}
