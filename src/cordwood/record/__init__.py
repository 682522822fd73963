"""Kafka's record batch, format version 2: reading its header, checking it, building it, looking inside it."""
