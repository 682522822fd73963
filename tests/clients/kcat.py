"""kcat, run against one broker."""

import shutil
import subprocess

import pytest

TIMEOUT_S = 30


class Kcat:
    """The program; tests that need it are skipped only where it can not be installed by us."""

    def __init__(self, bootstrap: str) -> None:
        found = shutil.which("kcat") or shutil.which("kafkacat")
        if found is None and shutil.which("apt-get") is None:
            pytest.skip("kcat is not installed, and there is no apt-get to install it with (macOS: brew install kcat)")
        assert found is not None, "kcat is missing: `make setup` installs it as root, or run `apt install kcat`"
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
