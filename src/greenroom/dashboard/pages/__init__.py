"""The functions of the pages, one module for each part of the dashboard."""
