"""Reads the configuration file or options into a ProcessConfig, and finds all problems at once."""
