"""What all tests of fetching share."""

from tests.fetch.farm import farm, healthy, home  # noqa: F401  (fixtures)
