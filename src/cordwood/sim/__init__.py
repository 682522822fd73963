"""The same broker under a seed: clock, network, disk and metadata store are simulated, and draw on nothing but
numbers.
"""
