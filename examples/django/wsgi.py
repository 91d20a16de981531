"""The project with a waiting room in its own process, for WSGI servers."""

from pathlib import Path

import shop  # noqa: F401 - sets Django up
from django.core.wsgi import get_wsgi_application

from greenroom.wsgi import WaitingRoom

application = WaitingRoom(get_wsgi_application(), Path(__file__).with_name("greenroom.toml"))
