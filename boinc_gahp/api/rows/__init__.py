"""A table of parameters as jobs, a job for each row.

============ ======================================================================================
table        jobs from a table of Python, or from a file
reading      the rows of a file of CSV or JSON
jobs         a row as a job
patterns     fills the values of a row into arguments, files and names
============ ======================================================================================
"""
