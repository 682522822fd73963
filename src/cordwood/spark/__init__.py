"""Spark: a data source, a sink and tables on Kafka topics, through PySpark and without a jar."""
