from typing import Any, NamedTuple

from greenroom.model.account import Role


class TourStep(NamedTuple):
    """`path` is below that of a room when it begins with a dot."""

    path: str
    title: str
    text: str
    role: Role = Role.VIEWER


TOUR = (
    TourStep(
        "/rooms",
        "Is everything all right?",
        "All your rooms, live: how full they are and how many people are waiting. Rooms that need"
        " you come first.",
    ),
    TourStep(
        "./live",
        "What can I change now?",
        "Run the sale from here. See what's holding people back, and act on it. You confirm every"
        " action, and can undo most of them.",
    ),
    TourStep(
        "./dry-run",
        "What will happen on Friday?",
        "Enter the crowd you expect and see how long people would wait, and what different limits"
        " would do.",
        Role.OPERATOR,
    ),
    TourStep(
        "./analytics",
        "What happened?",
        "Any span of time: drag over a chart to look closer, compare with an earlier time, download"
        " what you see.",
    ),
)


class ShownStep(NamedTuple):
    number: int
    of: int
    title: str
    text: str
    next: str
    end: str


def tour_of(page: Any) -> ShownStep | None:
    wanted = page.query("tour")
    steps = [step for step in TOUR if page.person.may(step.role)]
    if not page.session or wanted not in {str(number) for number in range(1, len(steps) + 1)}:
        return None
    room = next(
        iter(sorted(page.person.rooms(page.known), key=lambda entry: entry.record.name)), None
    )
    if room is None:
        return None
    number = int(wanted)
    base = f"/zones/{room.parent}/rooms/{room.id}"
    paths = [step.path.replace(".", base, 1) for step in steps]
    if page.request.url.path.removeprefix(page.prefix) != paths[number - 1]:
        return None
    step = steps[number - 1]
    following = page.url(paths[number], tour=str(number + 1)) if number < len(steps) else ""
    return ShownStep(
        number, len(steps), step.title, step.text, following, page.url(paths[number - 1])
    )
