"""Help below form fields, where that of the API's field speaks to programmers or repeats the label."""

from collections.abc import Mapping

ROOM: Mapping[str, str] = {
    "name": "A short name for you and your colleagues. Visitors do not see it.",
    "host": (
        "What visitors type, without https:// and port. *.example.com covers every host below it."
    ),
    "path": "/ covers the whole site, /tickets that page and all below it.",
    "total_active_users": "How many visitors may be in your application at the same time.",
    "queueing_method": "Who is let in next.",
    "queue_all": "Everyone who comes waits; visitors who are inside stay.",
    "suspended": "Every visitor goes straight to your application, and nothing is counted.",
    "queueing_status_code": (
        "200 suits browsers; 429 tells programs and search engines to come back later."
    ),
    "default_template_language": "Of the built-in page.",
    "cookie_suffix": "Needed with more hosts and paths. It follows _ in the name of the cookie.",
    "case_insensitive_paths": "/Sale and /sale are the same.",
    "on_unhealthy_origin": (
        "What happens to new visitors while the health checks of your application fail."
    ),
}
