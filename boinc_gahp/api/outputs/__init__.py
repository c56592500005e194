"""What comes back of a batch's jobs: files, records and reasons.

================ ==================================================================================
fetching         outputs, into folders or archives
fetching_batch   the threads that fetch a batch's jobs
folders          the folder of a job, also of one that ran a program
records          a row for each job, for DataFrames and for jobs.csv
logs             how single jobs ended, what they wrote, and each reason once
================ ==================================================================================
"""
