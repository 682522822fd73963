"""What the example job should do: a value that says it all, without Spark."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

WINDOW_MS: Final = 600_000
LATENESS_MS: Final = 600_000
"""How late an order may be and still count."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to read, and where to put the results."""

    bootstrap: str
    directory: str
    orders: str = "orders"
    customers: str = "customers"
    revenue: str = "revenue"
    group: str = "revenue-job"
    batch_records: int = 25_000

    @property
    def table(self) -> Path:
        return Path(self.directory) / "orders.parquet"

    @property
    def journal(self) -> Path:
        return Path(self.directory) / "journal.jsonl"

    def as_argument(self) -> str:
        return json.dumps(asdict(self))
