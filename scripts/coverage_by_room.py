"""Prints how many statements and branches of each room (package) the tests have run."""

import json
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import coverage


def main() -> int:
    """Print the table from the data that pytest-cov leaves in this directory."""
    data = coverage.Coverage()
    data.load()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        data.json_report(outfile=report.name)
        files = json.loads(Path(report.name).read_text())["files"]
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, told in files.items():
        parts = Path(path).parts
        room = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        for each in (room, "all"):
            rooms[each].update({k: v for k, v in told["summary"].items() if isinstance(v, int)})
    print(f"{'covered by tests':26}{'statements':>12}{'missed':>8}{'branches':>10}{'missed':>8}")
    for room, sums in sorted(rooms.items(), key=lambda each: (each[0] == "all", each[0])):
        of = sums["num_statements"] + sums["num_branches"]
        covered = sums["covered_lines"] + sums["covered_branches"]
        print(
            f"{room:26}{sums['num_statements']:12}{sums['missing_lines']:8}"
            f"{sums['num_branches']:10}{sums['missing_branches']:8}{covered / max(of, 1):8.1%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
