package redis

import (
	"strings"

	"github.com/redis/rueidis"
)

// verdict is what the answers to a call say of Redis.
type verdict struct {
	failed bool // something was not done
	lost   set  // the segments that did not answer, or whose server may not
	unfit  set  // those of them whose server is not the one to ask
}

// judge reads the results of commands, each to the segment in where.
func judge(results []rueidis.RedisResult, where []int) (v verdict) {
	for k, result := range results {
		err := result.Error()
		if err == nil || rueidis.IsRedisNil(err) {
			continue
		}
		v.failed = true
		if unreachable(err) {
			v.lost.add(where[k])
		}
		if unfit(err) {
			v.unfit.add(where[k])
		}
	}
	return v
}

// unreachable tells a server that does not answer, or may not, from one that
// answered, even with an error.
func unreachable(err error) bool {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return answer.IsClusterDown() || unfit(err)
	}
	return err != nil && !rueidis.IsRedisNil(err)
}

// unfit tells a server that is no primary any more, or not ready yet. It may answer
// reads in between, so there need not be several such errors in a row.
func unfit(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return ok && (answer.IsLoading() || strings.HasPrefix(answer.Error(), "READONLY") || strings.HasPrefix(answer.Error(), "MASTERDOWN"))
}
