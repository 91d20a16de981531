"""The types of the rules language: what a field holds, what a function takes and gives."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: String, Integer, Boolean, IP address, or an Array or Map `of` another one."""

    name: str
    of: "Kind | None" = None

    def __str__(self) -> str:
        return f"{self.name}<{self.of}>" if self.of else self.name


STRING = Kind("String")
INTEGER = Kind("Integer")
BOOLEAN = Kind("Boolean")
IP = Kind("IP address")


def array(of: Kind) -> Kind:
    """An ordered sequence, reached by `[0]` or `[*]`."""
    return Kind("Array", of)


def mapping(of: Kind) -> Kind:
    """Values under string keys, reached by `["key"]` or `[*]`."""
    return Kind("Map", of)


STRINGS = array(STRING)
BOOLEANS = array(BOOLEAN)
STRINGS_BY_NAME = mapping(STRINGS)
