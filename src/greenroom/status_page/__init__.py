"""The public status page for people, programs and feed readers."""

from greenroom.status_page.app import status_pages
from greenroom.status_page.view import CheckFacts, NoteFacts, RoomFacts, StatusFacts

__all__ = ["CheckFacts", "NoteFacts", "RoomFacts", "StatusFacts", "status_pages"]
