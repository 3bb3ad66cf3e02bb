"""One folder for each method, and the parts that methods share."""
