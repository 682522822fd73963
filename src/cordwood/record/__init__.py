"""Kafka's record batch, format version 2: read its header, check it, build it, look inside it."""
