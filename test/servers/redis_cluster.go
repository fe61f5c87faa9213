package servers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

const (
	primaries = 3     // the least that a Redis Cluster takes
	slots     = 16384 // of a Redis Cluster
)

// form makes a cluster of the nodes: the first three share the slots, and those
// after them follow one each. It waits until every node knows that.
func (r *RedisServer) form(ctx context.Context) error {
	for i, n := range r.nodes {
		// Nodes that were never in a cluster need an epoch each to settle conflicts.
		if _, err := n.ask(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i < primaries {
			first, last := i*slots/primaries, (i+1)*slots/primaries-1
			if _, err := n.ask(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
				return err
			}
		}
	}
	for i, a := range r.nodes {
		for _, b := range r.nodes[:i] { // all pairs: faster than by hearsay
			if _, err := a.ask(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(b.port), strconv.Itoa(b.bus)); err != nil {
				return err
			}
		}
	}
	if err := r.await(ctx, "cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(r.nodes))); err != nil {
		return err
	}
	return r.follow(ctx)
}

// follow makes the nodes after the primaries their replicas.
func (r *RedisServer) follow(ctx context.Context) error {
	for i, n := range r.nodes[primaries:] {
		id, err := r.nodes[i].ask(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		if _, err := n.ask(ctx, "CLUSTER", "REPLICATE", id); err != nil {
			return err
		}
	}
	return poll(ctx, func(ctx context.Context) error {
		for _, n := range r.nodes {
			nodes, err := n.ask(ctx, "CLUSTER", "NODES")
			if have := strings.Count(nodes, "slave"); err != nil || have != len(r.nodes)-primaries {
				return fmt.Errorf("%s knows of %d replicas: %w", addressOf(n.port), have, err)
			}
		}
		for _, n := range r.nodes[primaries:] {
			link, err := n.ask(ctx, "INFO", "replication")
			if err != nil || !strings.Contains(link, "master_link_status:up") {
				return fmt.Errorf("%s does not follow: %s: %w", addressOf(n.port), link, err)
			}
		}
		return nil
	})
}

// await waits until the CLUSTER INFO of every node has all the texts.
func (r *RedisServer) await(ctx context.Context, texts ...string) error {
	return poll(ctx, func(ctx context.Context) error {
		for _, n := range r.nodes {
			info, err := n.ask(ctx, "CLUSTER", "INFO")
			if err != nil {
				return err
			}
			for _, text := range texts {
				if !strings.Contains(info, text) {
					return fmt.Errorf("%s says: %s", addressOf(n.port), info)
				}
			}
		}
		return nil
	})
}
