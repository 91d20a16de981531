"""The configuration service as a dependency of API calls."""

from typing import Annotated

from starlette.requests import Request

from greenroom.web.config_service import ConfigService
from greenroom.web.routing import Depends


def config_service_of(request: Request) -> ConfigService:
    found: ConfigService = request.app.state.config_service
    return found


WithConfig = Annotated[ConfigService, Depends(config_service_of)]
