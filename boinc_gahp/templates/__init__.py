"""Job templates."""
