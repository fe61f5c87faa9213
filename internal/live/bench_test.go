package live

func runAsServer() bool { return false }
