"""A table of parameters as jobs, a job for each row.

============ ======================================================================================
reading      jobs from a table of Python, or from a file of CSV or JSON
jobs         a row as a job
texts        arguments and files as texts, into which the values of a row are filled
============ ======================================================================================
"""
