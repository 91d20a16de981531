"""Several observers of decisions as one."""

from collections.abc import Callable, Iterable

from greenroom.decision.observer import DecisionEvent, Observer


def observed_by(
    observers: Iterable[Observer], on_error: Callable[[BaseException], None]
) -> Observer:
    """One observer that tells all of them, in this order."""
    told = tuple(observers)
    if len(told) == 1:
        return _one_observer(told[0], on_error)

    def observe(event: DecisionEvent) -> None:
        for observer in told:
            try:
                observer(event)
            except Exception as error:
                on_error(error)

    return observe


def _one_observer(observer: Observer, on_error: Callable[[BaseException], None]) -> Observer:
    """The same for one, as nearly always, without a loop in every request."""

    def observe(event: DecisionEvent) -> None:
        try:
            observer(event)
        except Exception as error:
            on_error(error)

    return observe
