"""Files and options as records; all problems are reported at once, with field, reason and line."""
