"""The adjectives and adverbs: English and German, in three degrees."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.inflection import Adjective

# english [comparative superlative] = german [stem before an ending] [comparative superlative stems]
# Without degrees an adjective cannot be compared (*broken*, colours). "more" stands for more and most.
_TABLE = """
old older oldest = alt älter ältest
young younger youngest = jung jünger jüngst
tall taller tallest = groß größer größt
big bigger biggest = groß größer größt
small smaller smallest = klein kleiner kleinst
strong stronger strongest = stark stärker stärkst
friendly friendlier friendliest = freundlich freundlicher freundlichst
tired = müde|müd
ill = krank
happy happier happiest = glücklich glücklicher glücklichst
sad sadder saddest = traurig trauriger traurigst
rich richer richest = reich reicher reichst
poor poorer poorest = arm ärmer ärmst
famous more = berühmt berühmter berühmtest
clever cleverer cleverest = klug klüger klügst
hungry = hungrig
polite more = höflich höflicher höflichst
brave braver bravest = mutig mutiger mutigst
black = schwarz
white = weiß
brown = braun
red = rot
blue = blau
green = grün
wild = wild
dangerous more = gefährlich gefährlicher gefährlichst
fresh fresher freshest = frisch frischer frischest
cold colder coldest = kalt kälter kältest
warm warmer warmest = warm wärmer wärmst
hot hotter hottest = heiß heißer heißest
good better best = gut besser best
bad worse worst = schlecht schlechter schlechtest
cheap cheaper cheapest = billig billiger billigst
expensive more = teuer|teur teurer teuerst
long longer longest = lang länger längst
short shorter shortest = kurz kürzer kürzest
interesting more = interessant interessanter interessantest
boring more = langweilig langweiliger langweiligst
important more = wichtig wichtiger wichtigst
difficult more = schwierig schwieriger schwierigst
easy easier easiest = einfach einfacher einfachst
funny funnier funniest = lustig lustiger lustigst
new newer newest = neu neuer neuest
beautiful more = schön schöner schönst
heavy heavier heaviest = schwer schwerer schwerst
dirty dirtier dirtiest = schmutzig schmutziger schmutzigst
clean cleaner cleanest = sauber sauberer sauberst
elegant more = elegant eleganter elegantest
modern more = modern moderner modernst
round = rund
quiet quieter quietest = ruhig ruhiger ruhigst
high higher highest = hoch|hoh höher höchst
dark darker darkest = dunkel|dunkl dunkler dunkelst
"""


@cache
def _lexicon() -> dict[str, Adjective]:
    return {line.split()[0]: _adjective(line) for line in _TABLE.strip().splitlines()}


@cache
def adjectives(names: str) -> tuple[Adjective, ...]:
    """The adjectives that ``names`` lists, apart by spaces."""
    return tuple(_lexicon()[name] for name in names.split())


def _adjective(line: str) -> Adjective:
    english, german = (side.split() for side in line.split(" = "))
    predicative, _, stem = german[0].partition("|")
    base = english[0]
    if len(english) == 1:
        return Adjective((base,) * 3, (stem or predicative,) * 3, (predicative,) * 3, False)
    degrees = (f"more {base}", f"most {base}") if english[1] == "more" else (english[1], english[2])
    return Adjective(
        (base, *degrees),
        (stem or predicative, german[1], german[2]),
        (predicative, german[1], german[2]),
        True,
    )
