"""Clients: thin faces of confluent-kafka, for people and for the command line."""
