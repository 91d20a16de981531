"""Local data about a visitor's address: its location, and whether it is a verified crawler."""

from greenroom.lookups.crawlers import Crawlers
from greenroom.lookups.places import Places
from greenroom.rules import Place


class LocalLookups:
    __slots__ = ("crawler", "place")

    def __init__(self, places: Places, crawlers: Crawlers) -> None:
        self.place = places.place
        self.crawler = crawlers.category


__all__ = ["Crawlers", "LocalLookups", "Place", "Places"]
