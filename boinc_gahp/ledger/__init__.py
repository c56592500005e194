"""Data that must outlive the process, in SQLite: HTCondor's jobs, batches, aborted jobs."""
