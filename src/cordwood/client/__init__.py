"""Clients: thin wrappers around confluent-kafka for the command line, and a raw client for whole record batches."""
