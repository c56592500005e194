"""Job templates: read tolerantly, check, fill in, write strictly (``templates.rst``)."""
