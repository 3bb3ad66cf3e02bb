"""The garbage collector at the start of a process."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Turn the garbage collector off while modules are loaded.

    They consist of a million objects that live until the process ends. The collector would search them again and
    again, which takes a fifth of the time of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ignore_present_objects() -> None:
    """Let the garbage collector never search the objects that exist now.

    Collections are shorter then, above all the last one, at the end of a process. A collection writes to each object
    that it searches, so processes forked later also share more memory.
    """
    gc.freeze()
