"""Several brokers under a seed: the world of a cluster, its clients, and what must always hold."""
