"""Images of the dashboard's pages for the documents: ``make screenshots``."""
