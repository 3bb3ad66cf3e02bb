"""Rate limits by API key and by IP address."""
