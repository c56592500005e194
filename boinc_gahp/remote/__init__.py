"""Remote job submission: the Python API for people and programs."""
