"""A kernel that is compiled in no time."""

from cordwood.spark.machine import Ints, Kernel, Table


def _twice(number: int) -> int:
    return 2 * number


@Kernel
def doubled(values: Ints, table: Table, extra: int) -> int:
    """Twice the sum of all."""
    total = extra
    for i in range(values.size):
        total += values[i]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            total += table[i, j]
    return _twice(total)
