"""The page of any project: what people see of their batches in a browser.

It shows, and does nothing. :mod:`.board` asks the projects, :mod:`.views` makes HTML of it. It all
works without JavaScript; a small script keeps the display up to date (``static/page.js``).
"""
