"""What workers are told when a task arrives."""

import gc
import pickle
import socket
import sys

import pytest
from pyspark import TaskContext

from cordwood.spark import worker
from cordwood.spark.option_names import Use
from cordwood.spark.options import SourceOptions
from cordwood.spark.stream import StreamReader


@pytest.mark.skipif(sys.platform != "linux", reason="other systems hold nothing back")
def test_what_comes_next_is_confirmed_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX):
        before = worker.confirm_at_once()
        with socket.create_connection(server.getsockname()) as client, client.dup():
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            assert worker.confirm_at_once() == before + 1, "each connection once, and no other kind"
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1


def test_every_task_says_that_it_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = []
    monkeypatch.setattr(TaskContext, "get", lambda: "a task")
    monkeypatch.setattr(worker, "confirm_at_once", lambda: arrivals.append("here"))
    monkeypatch.setattr(gc, "freeze", lambda: arrivals.append("kept"))
    worker._keep_modules.cache_clear()
    options = SourceOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, Use.STREAM)
    sent = pickle.dumps(StreamReader(options))
    assert not arrivals
    pickle.loads(sent)
    pickle.loads(sent)
    assert arrivals == ["here", "kept", "here"]
    worker._keep_modules.cache_clear()


def test_processes_that_run_no_task_are_left_alone() -> None:
    before = gc.get_freeze_count()
    worker.arrive()
    assert gc.get_freeze_count() <= before  # what others have frozen may have been freed
