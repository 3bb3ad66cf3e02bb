"""Days in forms and queries, in UTC."""

from datetime import UTC, date, datetime, time, timedelta

from app.errors import InvalidRequest

FORM = "Write the day as year-month-day, as in 2029-01-31."


def parse_period(since: str, until: str) -> tuple[datetime | None, datetime | None]:
    """Parse the days of a period to its start and end; None for empty texts.

    Raises:
        InvalidRequest: at the query parameter ``since`` or ``until``.
    """
    start, last = parse_day(since, "since"), parse_day(until, "until")
    return start, None if last is None else last + timedelta(days=1)


def parse_day(text: str, name: str) -> datetime | None:
    """Parse the start of a day; None for empty text.

    Raises:
        InvalidRequest: at the query parameter ``name``.
    """
    try:
        return read_day(text)
    except ValueError:
        raise InvalidRequest.at(f"/query/{name}", FORM) from None


def read_day(text: str) -> datetime | None:
    """Parse the start of a day; None for empty text.

    Raises:
        ValueError: the text is not a day.
    """
    return datetime.combine(date.fromisoformat(text), time(), UTC) if text else None
