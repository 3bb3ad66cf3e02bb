"""Charts as SVG, drawn on the server; the numbers are also in the page's text."""
