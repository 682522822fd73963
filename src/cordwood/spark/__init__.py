"""Spark: a data source, a sink and tables on Kafka topics, through PySpark and without a jar.

``spark.read.format("cordwood")`` needs nothing from this module. It has ``attach``, which makes every topic a view for
SQL, and ``table``, which gives one topic as it was at certain offsets or at a certain time.

>>> import cordwood.spark
>>> cordwood.spark.attach(spark, "127.0.0.1:9092")  # doctest: +SKIP
['orders', 'payments']
>>> spark.sql("SELECT count(*) FROM orders").show()  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .views import attach, table

__all__ = ["attach", "table"]


def __getattr__(name: str) -> object:
    """Import what needs Spark only when it is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import views
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in ("numba", "numpy", "pandas", "pyarrow", "pyspark"):
            raise
        raise ImportError(f"{package} is not installed; run: pip install 'cordwood[spark]'", name=package) from missing
    found: object = getattr(views, name)
    return found
