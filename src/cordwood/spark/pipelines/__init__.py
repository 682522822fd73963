"""Pipelines: a directory of SQL and Python files that Spark Declarative Pipelines keeps up to date.

``project`` is the directory, ``example`` what `cordwood pipeline init` writes into it, ``worker`` the process that runs
Spark, ``engine`` what that process does, ``news`` how it knows that there is something to do, ``journal`` what it
writes down for everybody else to see (``recorder`` gets that from Spark), ``status`` and ``plot`` how that is shown.

Only ``engine`` and ``recorder`` import Spark.
"""
