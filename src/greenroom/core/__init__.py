"""The pure rules of a visit: which room, which decision, which cookie scope, which bypass rule."""
