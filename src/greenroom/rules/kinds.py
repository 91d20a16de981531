"""The types of the rules language."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueKind:
    name: str
    of: "ValueKind | None" = None

    def __str__(self) -> str:
        return f"{self.name}<{self.of}>" if self.of else self.name


STRING = ValueKind("String")
INTEGER = ValueKind("Integer")
BOOLEAN = ValueKind("Boolean")
IP = ValueKind("IP address")


def array(of: ValueKind) -> ValueKind:
    return ValueKind("Array", of)


def mapping(of: ValueKind) -> ValueKind:
    return ValueKind("Map", of)


STRINGS = array(STRING)
BOOLEANS = array(BOOLEAN)
STRINGS_BY_NAME = mapping(STRINGS)
