"""The project's back end: the programs that make work, hand it out, and judge results."""
