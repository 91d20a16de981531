"""The waiting page: what a held visitor sees, as HTML and as JSON."""

from greenroom.pages.accept_headers import asked_for
from greenroom.pages.page import (
    BUILT_IN_HEADERS,
    CUSTOM_HEADERS,
    JSON_HEADERS,
    UNCACHEABLE,
    Page,
    compile_page,
    error_headers_of,
    headers_of,
    left_page,
    origin_error_page,
)
from greenroom.pages.template import template_problems

__all__ = [
    "BUILT_IN_HEADERS",
    "CUSTOM_HEADERS",
    "JSON_HEADERS",
    "UNCACHEABLE",
    "Page",
    "asked_for",
    "compile_page",
    "error_headers_of",
    "headers_of",
    "left_page",
    "origin_error_page",
    "template_problems",
]
