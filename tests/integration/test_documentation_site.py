"""The documents as a web site: every link leads somewhere, and nothing is loaded from elsewhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

ROOT = Path(__file__).resolve().parents[2]
HERE = "http://site.invalid/"


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.ids: set[str | None] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        self.ids.add(facts.get("id"))
        self.links += [(tag, link) for name in ("href", "src") if (link := facts.get(name))]


def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "site.py"), "build", str(site)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 50
    broken, loaded = [], []
    for path, page in pages.items():
        for tag, link in page.links:
            url = urlsplit(urljoin(HERE + str(path.relative_to(site)), link))
            if url.netloc != urlsplit(HERE).netloc:
                loaded += [] if tag == "a" else [link]
                continue
            target = site / unquote(url.path).lstrip("/")
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (
                url.fragment and known and unquote(url.fragment) not in known.ids
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
    assert loaded == []
