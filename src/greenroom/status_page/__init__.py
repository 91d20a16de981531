"""The public status page: what works and what does not, in plain words, for people, programs and feed readers."""

from greenroom.status_page.app import status_pages
from greenroom.status_page.view import CheckFacts, NoteFacts, PageSettings, RoomFacts, StatusFacts

__all__ = ["CheckFacts", "NoteFacts", "PageSettings", "RoomFacts", "StatusFacts", "status_pages"]
