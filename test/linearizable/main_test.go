package linearizable

import (
	"testing"

	"likewise/internal/like"
	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// items are few, so that the devices of a user meet, and those of all users the same.
var items = []like.Item{{Collection: "posts", ID: "1"}, {Collection: "games", ID: "1"}}
