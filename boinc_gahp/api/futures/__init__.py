"""Results that are waited for: of rows, of programs, and of Python functions.

============ ======================================================================================
mapping      from rows to submitted jobs of an app, or of a program; their batch's name
functions    a function whose calls are jobs
job_futures  a future for each job
collecting   sets their results as the jobs end
============ ======================================================================================
"""
