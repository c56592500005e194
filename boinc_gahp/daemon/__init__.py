"""The process that HTCondor spawns."""
