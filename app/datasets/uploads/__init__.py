"""Contents on their way in: in one body, or in parts that can be resumed; each part is sealed by itself."""
