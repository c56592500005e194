"""Fetching: a finished job's outputs, from the project to where they are wanted."""
