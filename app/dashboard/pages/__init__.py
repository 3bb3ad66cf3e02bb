"""One module a page: it calls services and fills a template."""
