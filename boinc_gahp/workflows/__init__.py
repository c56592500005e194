"""Workflow managers whose jobs volunteers run: a package for each."""
