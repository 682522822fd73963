"""kcat, run against one broker."""

import shutil
import subprocess

from support.missing import missing

TIMEOUT_S = 30


class Kcat:
    """The program."""

    def __init__(self, bootstrap: str) -> None:
        found = shutil.which("kcat") or shutil.which("kafkacat")
        if found is None:
            missing("kcat is not installed: install it (Debian: apt install kcat; macOS: brew install kcat)")
        self.command = [found, "-b", bootstrap]

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            [*self.command, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def consume(self, topic: str, *arguments: str) -> list[str]:
        """Partition, offset, key and value of each record up to the end."""
        output = self.run("-C", "-q", "-e", "-t", topic, "-f", "%p %o %k %s\n", *arguments)
        return sorted(output.splitlines())
