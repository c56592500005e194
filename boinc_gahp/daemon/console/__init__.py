"""The daemon on a terminal: a prompt with history, completion, help, and results as they come."""
