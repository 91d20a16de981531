"""The project with a waiting room in its own process, for ASGI servers."""

from pathlib import Path

import shop  # noqa: F401 - sets Django up
from django.core.asgi import get_asgi_application

from greenroom.asgi import WaitingRoom

application = WaitingRoom(get_asgi_application(), Path(__file__).with_name("greenroom.toml"))
