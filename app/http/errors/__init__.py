"""Errors: codes, problem details, validation errors, and their part of the OpenAPI document."""
