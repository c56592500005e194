"""Threads that write into a ledger, and what is in its file then."""

import sqlite3
import threading
from contextlib import closing, contextmanager

from tests.helpers import wait_for


def put(key, value=""):
    def change(connection):
        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))

    return change


def keys(path):
    """Return what is on the disk, by a connection that has nothing to do with the store."""
    with closing(sqlite3.connect(path)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM meta")} - {"token"}


@contextmanager
def locked(path):
    """Hold the file's write lock, as another process that is writing does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


class Crowd:
    """Threads that each do something once, and what came of it."""

    def __init__(self, *tasks):
        self.results = [None] * len(tasks)
        self._threads = [
            threading.Thread(target=self._do, args=(index, task))
            for index, task in enumerate(tasks)
        ]
        for thread in self._threads:
            thread.start()

    def _do(self, index, task):
        try:
            self.results[index] = task()
        except Exception as error:  # noqa: BLE001
            self.results[index] = error

    def join(self):
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        return self.results


def writing(store, keys):
    return Crowd(*(lambda key=key: store.write(put(key)) for key in keys))


def queued(store, count):
    wait_for(lambda: len(store._queue) == count, f"{count} changes that wait")


@contextmanager
def committing(store):
    """Keep a commit, of the key "first", under way: what others write waits."""
    with locked(store.path):
        crowd = writing(store, ["first"])
        wait_for(store._connection_lock.locked, "a commit")
        yield
    assert crowd.join() == [None]
