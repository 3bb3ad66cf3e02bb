"""Makes the source folder of the documentation site from the project's documents and code.

Documents stay as they are read in the repository. :mod:`tools.guide.documents` copies them, :mod:`tools.guide.http_api`
describes the API, :mod:`tools.guide.sdk` the client, and :mod:`tools.guide.settings` the settings.
"""
