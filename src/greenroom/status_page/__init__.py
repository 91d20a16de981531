"""The public status page: what works and what does not, in plain words, for people, programs and
feed readers.
"""

from greenroom.status_page.app import status_pages
from greenroom.status_page.view import CheckFacts, NoteFacts, RoomFacts, StatusFacts

__all__ = ["CheckFacts", "NoteFacts", "RoomFacts", "StatusFacts", "status_pages"]
