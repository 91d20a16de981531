"""Form replay on a waiting page. A refresh would be a GET and lose the form, so the page's script,
or a button, sends it instead.
"""

from html import escape

from greenroom.pages.builtin import hash_of, source
from greenroom.pages.language import Language
from greenroom.request.form_replay import FormField, KeptForm

FORM_HTML_MAX = 128 * 1024
"""An escaped sign takes up to six times its place."""

FORM_ID = "greenroom-form"

_AT_ITS_TIME = '<script>setTimeout(()=>HTMLFormElement.prototype.submit.call(document.getElementById("%s")),%d)</script>'


def form_on_page(form: KeptForm | None, words: Language, end: bool) -> tuple[bytes, bool]:
    """The HTML, and whether the form is kept. `end`: the page does not update itself, so it has a
    button.
    """
    around = f"<style>{source('form.css')}</style>%s<script>{source('form.js')}</script>"
    if (fields := _fields(form)) is None:
        return (around % f"<p id=lost>{words.labels['form_lost']}").encode(), False
    button = f"<p><button>{words.labels['form_send']}</button>"
    by_hand = button if end else f"<noscript><p>{words.labels['form_by_hand']}{button}</noscript>"
    return (
        around
        % f"<form id=kept {_how(form)}><p>{words.labels['form_kept']}{by_hand}{fields}</form>"
    ).encode(), True


def policy_with_form(policy: bytes, kept: bool) -> bytes:
    """Browsers hold every redirect after a form to form-action, and an application may lead on to a
    payment at another site.
    """
    script, style = hash_of(source("form.js")).encode(), hash_of(source("form.css")).encode()
    policy = policy.replace(b"script-src ", b"script-src 'sha256-%b' " % script).replace(
        b"style-src ", b"style-src 'sha256-%b' " % style
    )
    return policy.replace(b"form-action 'self'", b"form-action http: https:") if kept else policy


def form_on_own_page(form: KeptForm | None, words: Language, next_try_s: int) -> tuple[bytes, bool]:
    if (fields := _fields(form)) is None:
        return f'<p id="{FORM_ID}">{words.labels["form_lost"]}</p>'.encode(), False
    said = f'<form id="{FORM_ID}" {_how(form)}><p>{words.labels["form_kept"]}</p>'
    script = _AT_ITS_TIME % (FORM_ID, next_try_s * 1000) if next_try_s else ""
    return (
        f"{said}<button>{words.labels['form_send']}</button>{fields}</form>{script}".encode(),
        True,
    )


def at_the_end(page: bytes, block: bytes) -> bytes:
    at = page.lower().rfind(b"</body")
    return page + block if at < 0 else page[:at] + block + page[at:]


def _how(form: KeptForm | None) -> str:
    return (
        "method=post"
        f" accept-charset=utf-8{' enctype=multipart/form-data' if form is not None and form.multipart else ''}"
    )


def _fields(form: KeptForm | None) -> str | None:
    """None when there is no form, or too much of it."""
    if form is None:
        return None
    fields = "".join([(_file if field.file else _text)(field) for field in form.fields])
    return fields if len(fields.encode()) <= FORM_HTML_MAX else None


def _text(field: FormField) -> str:
    return f'<input type=hidden name="{_escaped(field.name)}" value="{_escaped(field.value)}">'


def _file(field: FormField) -> str:
    return f'<input type=file hidden name="{_escaped(field.name)}">'


def _escaped(text: str) -> str:
    """HTML parsers make LF of CRLF, unless it is spelled."""
    said = escape(text)
    return said.replace("\r", "&#13;").replace("\n", "&#10;") if "\n" in said else said
