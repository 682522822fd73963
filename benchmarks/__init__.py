"""Cordwood beside Apache Kafka: one run, both brokers warm, alternating, the same Java clients. See README.md."""
