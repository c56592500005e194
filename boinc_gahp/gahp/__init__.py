"""HTCondor's GAHP protocol, without I/O."""
