"""What the demo's shop sells."""

from dataclasses import dataclass

_LINE = 'fill="none" stroke="currentColor" stroke-width="4"'


@dataclass(frozen=True, slots=True)
class Product:
    """`art` is the inside of an SVG of 100 x 100, `hue` degrees."""

    slug: str
    name: str
    price: int
    line: str
    hue: int
    art: str

    @property
    def picture(self) -> str:
        return f'<svg viewBox="0 0 100 100" role="img" aria-label="{self.name}">{self.art}</svg>'


PRODUCTS = (
    Product(
        slug="lantern",
        name="Garden lantern",
        price=39,
        line="Warm light for late evenings",
        hue=38,
        art=(
            f'<path d="M50 12v10M34 30h32l6 44H28z" {_LINE}/><circle cx="50" cy="54" r="10"'
            ' fill="currentColor"/>'
        ),
    ),
    Product(
        slug="teapot",
        name="Stoneware teapot",
        price=54,
        line="Holds six cups and a long talk",
        hue=200,
        art=(
            '<path d="M26 46h44v14a20 20 0 0 1-20 20h-4a20 20 0 0 1-20-20zM70 50c14-2 14 18-2 18"'
            f' {_LINE}/><path d="M26 54 12 44M40 46c0-12 16-12 16 0" {_LINE}/><circle cx="48"'
            ' cy="32" r="4" fill="currentColor"/>'
        ),
    ),
    Product(
        slug="monstera",
        name="Potted monstera",
        price=29,
        line="Grows whether you watch or not",
        hue=140,
        art=(
            '<path d="M50 66V30M50 44C30 44 24 30 26 18c16 0 24 10 24 26zm0 8c18 0 26-12 24-26-16'
            f' 0-24 12-24 26z" fill="currentColor"/><path d="M34 66h32l-5 22H39z" {_LINE}/>'
        ),
    ),
    Product(
        slug="records",
        name="Record player",
        price=189,
        line="Side B is the better one",
        hue=280,
        art=(
            f'<rect x="14" y="22" width="72" height="56" rx="6" {_LINE}/><circle cx="44" cy="50"'
            f' r="18" {_LINE}/><circle cx="44" cy="50" r="5" fill="currentColor"/><path d="M76'
            f' 32v20l-10 12" {_LINE}/>'
        ),
    ),
    Product(
        slug="blanket",
        name="Wool blanket",
        price=79,
        line="Two sheep, one winter",
        hue=350,
        art=f'<path d="M20 28h60v44H20zM20 42h60M20 58h60M36 28v44M64 28v44" {_LINE}/>',
    ),
    Product(
        slug="kite",
        name="Paper kite",
        price=18,
        line="Wind not included",
        hue=170,
        art=f'<path d="M50 10 76 42 50 74 24 42zM50 10v64M24 42h52M50 74c-8 8 8 10 0 18" {_LINE}/>',
    ),
)
