from collections.abc import Callable

OnError = Callable[[BaseException], None]

Say = Callable[[str], None]
