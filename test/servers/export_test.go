package servers

// Watch guards what tests start with Up.
var Watch = watch
