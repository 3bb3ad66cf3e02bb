"""The reference page of the API, made from its OpenAPI document."""
