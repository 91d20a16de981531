"""A Flask application with a waiting room in its own process."""

from pathlib import Path

from flask import Flask

from greenroom.wsgi import WaitingRoom

app = Flask(__name__)


@app.get("/")
def home() -> str:
    """A page."""
    return "<title>Shop</title><h1>Welcome to the shop</h1>"


app.wsgi_app = WaitingRoom(app.wsgi_app, Path(__file__).with_name("greenroom.toml"))
