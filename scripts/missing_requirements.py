"""Print the requirements of extras in setup.cfg that this interpreter lacks, one per line.

With --oldest before the extras, those of the program itself are for the oldest release that is
allowed.
"""

from __future__ import annotations

import configparser
import sys
from importlib import metadata
from pathlib import Path

# A new environment has no package "packaging", but pip contains it.
from pip._vendor.packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


#: What is for developers alone: the newest releases will do.
DEVELOPERS = {"docs", "test"}


def requirements(extras: list[str], oldest: bool) -> list[str]:
    """Return the requirements of boinc_gahp with ``extras``, each once."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    known = parser["options.extras_require"]
    if unknown := [extra for extra in extras if extra not in known]:
        raise SystemExit(f"setup.cfg has no extra {', '.join(unknown)}; it has {', '.join(known)}")
    texts = {None: parser["options"]["install_requires"]} | {each: known[each] for each in extras}
    lines = [
        line.replace(">=", "==", 1) if oldest and extra not in DEVELOPERS else line
        for extra, text in texts.items()
        for line in text.splitlines()
        if line.strip()
    ]
    return list(dict.fromkeys(lines))


def is_missing(requirement: Requirement) -> bool:
    """Tell whether no installed version satisfies the requirement."""
    if requirement.marker is not None and not requirement.marker.evaluate():
        return False
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return True
    return not requirement.specifier.contains(installed, prereleases=True)


def is_installed_from_here() -> bool:
    """Tell whether boinc_gahp is installed from this directory, with what setup.cfg has today.

    A pull may bring other commands and packages, not only other requirements.
    """
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
    try:
        import boinc_gahp  # noqa: PLC0415
    except ImportError:
        return False
    command = Path(sys.executable).parent / "boinc_gahp"
    return (
        Path(boinc_gahp.__file__).resolve().is_relative_to(ROOT)
        and command.exists()
        and command.stat().st_mtime >= (ROOT / "setup.cfg").stat().st_mtime
    )


if not is_installed_from_here():
    print("boinc_gahp")
words = sys.argv[1:]
for each in requirements([word for word in words if word != "--oldest"], "--oldest" in words):
    if is_missing(Requirement(each)):
        print(each)
