"""The same broker under a seed: clock, network, disk and metadata store are simulated, from nothing but numbers."""
