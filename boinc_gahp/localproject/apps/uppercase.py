"""Supplied app: writes ``in`` to ``out`` in capitals.

Options: ``--sleep S`` first waits S seconds, ``--fail N`` exits with status N; others are ignored.
It opens its files without pathlib, whose import takes longer than all the rest.
"""

import sys
import time


def option(name: str, default: float = 0.0) -> float:
    """Return the number after an option."""
    arguments = sys.argv[1:]
    return float(arguments[arguments.index(name) + 1]) if name in arguments else default


def main() -> int:
    """Run the command line; return the exit status."""
    sys.stderr.write(f"starting uppercase args: {' '.join(sys.argv[1:])}\n")
    time.sleep(option("--sleep"))
    failure = int(option("--fail"))
    if failure:
        sys.stderr.write(f"failing with {failure} as asked\n")
        return failure
    with open("in", "rb") as source, open("out", "wb") as target:  # noqa: PTH123
        for line in source:
            target.write(
                line.decode("utf-8", "surrogateescape").upper().encode("utf-8", "surrogateescape")
            )
    sys.stderr.write("called boinc_finish(0)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
