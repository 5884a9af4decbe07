"""When things happen: adverbs, times of day and dates, each as (English, German), ready to be chosen from."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.numbers import english_cardinal, english_ordinal, german_cardinal, german_ordinal

Pair = tuple[str, str]
Choice = tuple[tuple[Pair, ...], ...]  # choose a group, then one of the group

DAYS: tuple[Pair, ...] = (
    ("Monday", "Montag"),
    ("Tuesday", "Dienstag"),
    ("Wednesday", "Mittwoch"),
    ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"),
    ("Saturday", "Samstag"),
    ("Sunday", "Sonntag"),
)
MONTHS: tuple[tuple[str, str, int], ...] = (
    ("January", "Januar", 31),
    ("February", "Februar", 29),
    ("March", "März", 31),
    ("April", "April", 30),
    ("May", "Mai", 31),
    ("June", "Juni", 30),
    ("July", "Juli", 31),
    ("August", "August", 31),
    ("September", "September", 30),
    ("October", "Oktober", 31),
    ("November", "November", 30),
    ("December", "Dezember", 31),
)
_PARTS: tuple[Pair, ...] = (
    ("morning", "Morgen"),
    ("afternoon", "Nachmittag"),
    ("evening", "Abend"),
)
_SEASONS: tuple[Pair, ...] = (
    ("spring", "Frühling"),
    ("summer", "Sommer"),
    ("autumn", "Herbst"),
    ("winter", "Winter"),
)

PRESENT: tuple[Pair, ...] = (
    ("now", "jetzt"),
    ("today", "heute"),
    ("at the moment", "im Moment"),
    ("this morning", "heute Morgen"),
    ("this evening", "heute Abend"),
)
PAST: tuple[Pair, ...] = (
    ("yesterday", "gestern"),
    ("yesterday morning", "gestern Morgen"),
    ("yesterday evening", "gestern Abend"),
    ("the day before yesterday", "vorgestern"),
    ("last week", "letzte Woche"),
    ("last month", "letzten Monat"),
    ("last year", "letztes Jahr"),
    ("last night", "letzte Nacht"),
)
FUTURE: tuple[Pair, ...] = (
    ("today", "heute"),
    ("tomorrow", "morgen"),
    ("tomorrow morning", "morgen früh"),
    ("tomorrow evening", "morgen Abend"),
    ("the day after tomorrow", "übermorgen"),
    ("next week", "nächste Woche"),
    ("next month", "nächsten Monat"),
    ("next year", "nächstes Jahr"),
)
FREQUENCY: tuple[Pair, ...] = (
    ("always", "immer"),
    ("often", "oft"),
    ("sometimes", "manchmal"),
    ("rarely", "selten"),
    ("never", "nie"),
)


def clock_time(hour: int, minute: int) -> Pair:
    """The time of day on a twelve-hour clock: (*half past two*, *halb drei*); minutes in steps of five."""
    assert 1 <= hour <= 12, f"hours run from 1 to 12, not {hour}"
    assert minute in range(0, 60, 5), f"minutes are told in steps of five, not {minute}"
    following = hour % 12 + 1
    if minute == 0:
        german = "ein" if hour == 1 else german_cardinal(hour)
        return f"{english_cardinal(hour)} o'clock", f"{german} Uhr"
    if minute == 30:
        return f"half past {english_cardinal(hour)}", f"halb {german_cardinal(following)}"
    if minute in (25, 35):
        past, anchor, vor = ("past", hour, "vor") if minute == 25 else ("to", following, "nach")
        half = f"halb {german_cardinal(following)}"
        return f"twenty-five {past} {english_cardinal(anchor)}", f"fünf {vor} {half}"
    late = minute > 30
    distance = 60 - minute if late else minute
    anchor = following if late else hour
    english = "a quarter" if distance == 15 else english_cardinal(distance)
    german = "Viertel" if distance == 15 else german_cardinal(distance)
    return (
        f"{english} {'to' if late else 'past'} {english_cardinal(anchor)}",
        f"{german} {'vor' if late else 'nach'} {german_cardinal(anchor)}",
    )


def date(day: int, month: int) -> tuple[str, str]:
    """A day of the year, German without article and ending: (*the third of May*, *dritt{} Mai*)."""
    english, german, _ = MONTHS[month - 1]
    return f"the {english_ordinal(day)} of {english}", f"{german_ordinal(day)}{{}} {german}"


@cache
def clock_times() -> tuple[Pair, ...]:
    """All 144 times of day."""
    return tuple(clock_time(hour, minute) for hour in range(1, 13) for minute in range(0, 60, 5))


@cache
def dates() -> tuple[Pair, ...]:
    """All days of the year in the form of :func:`date`."""
    return tuple(
        date(day, number) for number, month in enumerate(MONTHS, 1) for day in range(1, month[2] + 1)
    )


def _spans(english: str, german: str) -> tuple[Pair, ...]:
    """Two to nine days, weeks, months, between the words around them: (*{} ago*, *vor {}*)."""
    units = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"))
    return tuple(
        (english.format(f"{english_cardinal(n)} {unit}"), german.format(f"{german_cardinal(n)} {einheit}"))
        for unit, einheit in units
        for n in range(2, 10)
    )


@cache
def time_choices() -> dict[str, Choice]:
    """Groups of time phrases for ``present``, ``habit``, ``past`` and ``future``.

    Those with ``hour`` after them leave out what is longer than a day, those with ``state`` what is shorter;
    ``liking`` goes with *likes to*.
    """
    clock = tuple((f"at {english}", f"um {german}") for english, german in clock_times())
    on_date = tuple((f"on {english}", f"am {german.format('en')}") for english, german in dates())
    on_day = tuple((f"on {english}", f"am {german}") for english, german in DAYS)
    day_part = tuple(
        (f"on {day} {part}", f"am {tag}{teil.lower()}") for day, tag in DAYS for part, teil in _PARTS
    )
    in_part = (
        *((f"in the {english}", f"am {german}") for english, german in _PARTS),
        ("at night", "in der Nacht"),
    )
    season = tuple((f"in {english}", f"im {german}") for english, german in _SEASONS)
    month = tuple((f"in {english}", f"im {german}") for english, german, _ in MONTHS)
    every_day = (
        ("every day", "jeden Tag"),
        ("every morning", "jeden Morgen"),
        ("every evening", "jeden Abend"),
    )
    every = tuple((f"every {day}", f"jeden {tag}") for day, tag in DAYS) + every_day
    every_long = (("every week", "jede Woche"), ("every month", "jeden Monat"), ("every year", "jedes Jahr"))
    exact = tuple((f"{day} {at}", f"{tag} {um}") for day, tag in on_day for at, um in clock)
    exact_past = tuple((f"yesterday {at}", f"gestern {um}") for at, um in clock) + exact
    exact_future = (
        tuple((f"{day} {at}", f"{tag} {um}") for day, tag in FUTURE[:2] for at, um in clock) + exact
    )
    past_long = (PAST[4:7], _spans("{} ago", "vor {}"), month + season, on_date)
    future_long = (FUTURE[5:], _spans("in {}", "in {}"), month + season, on_date)
    past = (PAST[:4], PAST[:4], on_day + day_part, clock, exact_past)
    future = (FUTURE[:5], FUTURE[:5], on_day + day_part, clock, exact_future)
    habit = (every, every, in_part, clock)
    return {
        "present": (PRESENT,),
        "present hour": (PRESENT,),
        "present state": (PRESENT[1:2],),
        "habit state": (season,),
        "past state": (PAST[4:7], _spans("{} ago", "vor {}"), month + season),
        "future state": (FUTURE[5:], _spans("in {}", "in {}"), month + season),
        "liking": (in_part, season),
        "liking hour": (in_part,),
        "habit": (*habit, every_long, season),
        "habit hour": habit,
        "past": past + past_long,
        "past hour": (*past, on_date),
        "future": future + future_long,
        "future hour": (*future, on_date),
    }
