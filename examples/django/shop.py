"""A Django project in one file: settings, one page and its address."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of the example only")


def home(_request: HttpRequest) -> HttpResponse:
    """A page."""
    return HttpResponse("<title>Shop</title><h1>Welcome to the shop</h1>")


urlpatterns = [path("", home)]
