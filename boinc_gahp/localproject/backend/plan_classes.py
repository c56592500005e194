"""``plan_class_spec.xml``, in which a project's admin describes plan classes.

The local project needs none: its hosts' container engine decides. But a file that a real scheduler
cannot read stops all apps with a plan class here, too (``containers.rst``, "What the project's
admin does").
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("boinc_gahp.localproject")


def plan_classes_can_be_read(directory: Path) -> bool:
    """Whether a project's file is missing, or is XML with the root that it must have."""
    path = directory / "plan_class_spec.xml"
    try:
        if etree.fromstring(path.read_bytes()).tag == "plan_classes":
            return True
    except FileNotFoundError:
        return True
    except (OSError, etree.XMLSyntaxError):
        pass
    log.critical("Error parsing plan class spec file '%s'", path)
    return False
