"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status."""
