"""The client's resources, one module for each noun of the API."""
