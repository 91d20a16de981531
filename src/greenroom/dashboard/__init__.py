"""The dashboard on the control listener: pages for operators, over the same use cases as the API."""

from greenroom.dashboard.app import Dashboard
from greenroom.dashboard.sign_in import LINK_PATH, SignIn, make_link
from greenroom.web.pages.request import PREFIX

__all__ = ["LINK_PATH", "PREFIX", "Dashboard", "SignIn", "make_link"]
