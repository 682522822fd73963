"""The same broker under a seed: clock, network, disk and metadata store are made of nothing but numbers."""
