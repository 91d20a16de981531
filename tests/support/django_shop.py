"""A Django site as Django's own documentation builds one: forms with its token against forgery, an
upload, a redirect afterwards.

`python django_shop.py` prints its port. `/received` lists what the views were given, as JSON.
"""

import sys
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template import Context, Engine
from django.template.context_processors import csrf
from django.urls import path

PAGE = """<!doctype html><link rel=icon href=data:,><title>Shop</title>
<form method=post action="/order" id=order{% if multipart %} enctype=multipart/form-data{% endif %}>{% csrf_token %}
  <input name=cake><textarea name=note></textarea><input name=submit value=7>{% if multipart %}<input type=file name=photo>{% endif %}
  <button name=how value=now>Order</button></form>"""
RECEIVED: list[dict[str, Any]] = []


def shop(request: HttpRequest) -> HttpResponse:
    context = Context({"multipart": "multipart" in request.GET, **csrf(request)})
    return HttpResponse(Engine().from_string(PAGE).render(context))


def order(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return HttpResponse("<title>No form</title>", status=405)
    sent = {name: value for name, value in request.POST.items() if name != "csrfmiddlewaretoken"}
    RECEIVED.append(
        {**sent, "photo": request.FILES["photo"].size} if "photo" in request.FILES else sent
    )
    return HttpResponseRedirect(request.GET.get("next", "/done"))


def done(_: HttpRequest) -> HttpResponse:
    return HttpResponse("<title>Thank you</title>")


def received(_: HttpRequest) -> HttpResponse:
    return JsonResponse(RECEIVED, safe=False)


urlpatterns = [
    path("shop", shop),
    path("order", order),
    path("done", done),
    path("received", received),
]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


if __name__ == "__main__":
    settings.configure(
        SECRET_KEY="not a secret in a test",
        ROOT_URLCONF="__main__",
        ALLOWED_HOSTS=["*"],
        USE_X_FORWARDED_HOST=True,
        SECURE_CROSS_ORIGIN_OPENER_POLICY=None,
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
        ],
    )
    django.setup()
    with make_server("127.0.0.1", 0, get_wsgi_application(), Threads, Quiet) as server:
        print(server.server_port, flush=True)
        sys.stdout.close()
        server.serve_forever()
