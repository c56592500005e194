"""Supplied app: converts ``in`` and packs the results into one output, ``out.zip``.

Its members are the real outputs: ``upper.txt``, ``sub/len.txt`` and ``cmdline.txt``.
"""

import sys
import zipfile
from pathlib import Path


def main() -> int:
    """Write the archive; return the exit status."""
    data = Path("in").read_bytes()
    text = data.decode("utf-8", "surrogateescape").upper().encode("utf-8", "surrogateescape")
    with zipfile.ZipFile("out.zip", "w") as archive:
        archive.writestr("upper.txt", text)
        archive.writestr("sub/len.txt", str(len(data)))
        archive.writestr("cmdline.txt", " ".join(sys.argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
