"""The dashboard on the control listener: pages for operators, over the same use cases as the API."""

from greenroom.dashboard.app import Dashboard
from greenroom.web.pages.request import PREFIX

__all__ = ["PREFIX", "Dashboard"]
