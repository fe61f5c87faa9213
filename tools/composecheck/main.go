// Command composecheck checks a Compose file where no container engine runs:
//
//	composecheck deploy/compose.yaml
//
// It reads the file as Compose does, strictly and with its schema, and then asks
// for what is house rule here: images with a tag, services that are not root, ports
// on loopback only, and a health check for everything.
//
// It exits with 1 and one line for each fault.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: composecheck FILE")
		os.Exit(2)
	}
	project, err := load(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "composecheck:", err)
		os.Exit(1)
	}
	found := check(project)
	for _, fault := range found {
		fmt.Fprintf(os.Stderr, "%s: %s\n", os.Args[1], fault)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%s: %d services\n", os.Args[1], len(project.Services))
}

// load reads the file without the environment, so that the result is the same
// everywhere.
func load(path string) (*types.Project, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	options, err := cli.NewProjectOptions([]string{path}, cli.WithWorkingDirectory(filepath.Dir(path)), cli.WithDiscardEnvFile)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

// check returns what the schema allows and this project does not.
func check(project *types.Project) []string {
	var found []string
	for _, name := range project.ServiceNames() {
		service := project.Services[name]
		report := func(format string, args ...any) {
			found = append(found, "service "+name+": "+fmt.Sprintf(format, args...))
		}
		if _, tag, ok := strings.Cut(filepath.Base(service.Image), ":"); !ok || tag == "latest" {
			report("image %q has no tag of its own; name a version", service.Image)
		}
		if user, _, _ := strings.Cut(service.User, ":"); slices.Contains([]string{"", "0", "root"}, user) {
			report("runs as root, or as the image likes; name a user")
		}
		if service.HealthCheck == nil || service.HealthCheck.Disable {
			report("has no health check")
		}
		for _, port := range service.Ports {
			if address, err := netip.ParseAddr(port.HostIP); err != nil || !address.IsLoopback() {
				report("port %d is open to other machines; publish it on 127.0.0.1", port.Target)
			}
		}
		if service.Privileged || service.NetworkMode == "host" {
			report("has the rights or the network of the machine")
		}
	}
	return found
}
