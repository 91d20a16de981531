"""What the calls of the API share: the room in their path, and the configuration to look at and to
change.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from greenroom.model.configuration import Configuration
from greenroom.web.config_service import ConfigChange, ConfigService
from greenroom.web.dependencies import Editor
from greenroom.web.envelope import answered, answered_bare
from greenroom.web.routing import Depends


def config_service_of(request: Request) -> ConfigService:
    found: ConfigService = request.app.state.config_service
    return found


WithConfig = Annotated[ConfigService, Depends(config_service_of)]


class RoomIds(NamedTuple):
    zone_id: str
    waiting_room_id: str


RoomPath = Annotated[RoomIds, Depends(RoomIds)]


class ReadCall:
    def __init__(self, config_service: WithConfig) -> None:
        self._service = config_service

    def __call__(self, ask: Callable[[Configuration], Any]) -> Response:
        return answered(self._service.look(ask))


class EditCall:
    """Carries out a change in the name of the caller, who must be allowed to edit."""

    def __init__(self, caller: Editor, config_service: WithConfig) -> None:
        self.caller = caller
        self.service = config_service

    def __call__(self, plan: ConfigChange) -> Response:
        return answered(self.service.change(self.caller.author, plan))

    def bare(self, plan: ConfigChange) -> Response:
        """The response has no result."""
        self.service.change(self.caller.author, plan)
        return answered_bare()


Read = Annotated[ReadCall, Depends(ReadCall)]
Edit = Annotated[EditCall, Depends(EditCall)]
