"""Server-rendered pages at ``/dashboard``. They call the services that the API's endpoints call."""
