"""A terminal in this process, for whatever draws on one."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading


class Terminal:
    """A terminal of 40 lines, and what was written to it; a context manager.

    Attributes:
        stream: the terminal, to write to; it is closed at the end.
    """

    def __init__(self, columns=80):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self._written = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        while True:
            try:
                self._written.append(os.read(self._master, 65536))
            except OSError:  # nobody has it open any more
                return

    @property
    def text(self):
        return b"".join(self._written).decode("utf-8", "ignore").replace("\r\n", "\n")

    @property
    def plain(self):
        """The text without colours and what else moves a cursor."""
        return plain(self.text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self._reader.join(60)
        os.close(self._master)


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
