"""The project's page: what people see of a project in a browser.

A Flask blueprint; it all works without JavaScript, and a small script keeps the display up to date
(``static/page.js``).
"""
