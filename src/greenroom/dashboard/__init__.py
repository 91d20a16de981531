"""The dashboard on the control listener: pages for operators, over the same use cases as the API."""

from greenroom.dashboard.app import Dashboard
from greenroom.dashboard.request import PREFIX
from greenroom.dashboard.services import Services
from greenroom.dashboard.sign_in import LINK_PATH, SignIn, make_link

__all__ = ["LINK_PATH", "PREFIX", "Dashboard", "Services", "SignIn", "make_link"]
