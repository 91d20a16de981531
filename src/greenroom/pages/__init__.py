"""The waiting page: the published variables, custom Mustache pages, JSON and the built-in page."""
