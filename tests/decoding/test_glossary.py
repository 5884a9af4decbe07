from __future__ import annotations

from pathlib import Path

import pytest

from transduce.decoding.glossary import Entry, Glossary
from transduce.decoding.terms import Term
from transduce.errors import DataError, UsageError

TBX = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "http://127.0.0.1:9/never.dtd">
<martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1">
 <langSet xml:lang="en-GB"><tig><term>engine &amp; gear</term></tig>
  <ntig><termGrp><term>motor</term></termGrp></ntig></langSet>
 <langSet xml:lang="de"><tig><term>Altes</term>
   <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
  <tig><term>Motor</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>moteur</term></tig></langSet>
</termEntry>
<conceptEntry id="2"><langSec xml:lang="en"><termSec><term>wheel</term></termSec></langSec>
 <langSec xml:lang="de-DE"><termSec><term>Rad</term></termSec></langSec></conceptEntry>
<termEntry id="3"><langSet xml:lang="fr"><tig><term>pneu</term></tig></langSet></termEntry>
</body></text></martif>
"""


def glossary(*pairs: tuple[str, str]) -> Glossary:
    return Glossary(Entry(source, Term(target), f"g:{i}") for i, (source, target) in enumerate(pairs, 1))


def found(entries: Glossary, source: str) -> list[str]:
    return [term.text for term in entries.terms(source)]


def test_whole_words_are_found_the_longest_first_and_each_once() -> None:
    entries = glossary(
        ("dog", "Hund"),
        ("hot dog", "Hotdog"),
        ("dog food", "Hundefutter"),
        ("cat", "Katze"),
        ("a.m.", "morgens"),
    )
    assert found(entries, "A cat, a dog, another dog.") == ["Katze", "Hund"]
    assert found(entries, "hotdog dogs cats dog_food") == []
    assert found(entries, "a hot  dog!") == ["Hotdog"]
    assert found(entries, "hot dog food") == ["Hotdog"]  # equally long: the first in the line
    assert found(entries, "dog food for a dog-cat") == ["Hundefutter", "Hund", "Katze"]
    assert found(entries, "at 9 a.m.") == ["morgens"]
    assert found(entries, "") == []


def test_small_letters_are_found_capitalised_and_capital_ones_only_as_they_are() -> None:
    entries = glossary(("it", "es"), ("IT", "Informatik"), ("Polish", "Polnisch"), ("über", "ueber"))
    assert found(entries, "It is") == ["es"]
    assert found(entries, "IT is") == ["Informatik"]
    assert found(entries, "polish Polish") == ["Polnisch"]
    assert found(entries, "Über") == ["ueber"]


def test_scripts_without_spaces_have_words_anywhere() -> None:
    assert found(glossary(("犬", "dog"), ("子犬", "puppy")), "この子犬と犬が") == ["puppy", "dog"]


def test_a_tsv_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(
        "dog\tHund\n\n cat \tKatze\tinflect\ntree\tBaum\texact\n#1\tNummer eins\n", encoding="utf-8"
    )
    read = Glossary.read(path)
    assert read.terms("dog cat tree #1") == [
        Term("Hund"), Term("Katze", exact=False), Term("Baum"), Term("Nummer eins")
    ]  # fmt: skip
    assert Glossary.read(path, exact=False).terms("dog tree") == [Term("Hund", exact=False), Term("Baum")]
    assert len(read) == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("house", r"terms.tsv:2: has 1 column, 'house'; write source TAB target"),
        ("a\tb\texact\td", r"terms.tsv:2: has 4 columns"),
        ("a\tb\tyes", r"terms.tsv:2: the third column is 'yes'; it may be exact or inflect"),
        ("a\t ", r"terms.tsv:2: a glossary entry needs a source and a target term"),
        ("\tb", r"terms.tsv:2: a glossary entry needs a source and a target term"),
        ("dog\tKöter", r"terms.tsv:2: 'dog' is to be 'Köter', but .*terms.tsv:1 says 'Hund'; keep"),
    ],
)  # fmt: skip
def test_mistakes_name_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"dog\tHund\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        Glossary.read(path)


def test_a_tbx_file_of_either_version(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    path.write_text(TBX, encoding="utf-8")
    read = Glossary.read(path, languages="en:de")
    assert found(read, "motor wheel engine & gear") == ["Motor", "Rad"]
    assert found(Glossary.read(path, languages="fr:en"), "moteur pneu") == ["engine & gear"]
    for languages, error, message in (
        ("", UsageError, "name source and target, e.g. en:de"),
        ("en", UsageError, "name source and target"),
        ("en:eng", UsageError, "languages is 'en:eng'; name two, e.g. en:de"),
        (
            "en:es",
            DataError,
            "has no terms in the language 'es'; its languages are: de, de-DE, en, en-GB, fr",
        ),
    ):
        with pytest.raises(error, match=message):
            Glossary.read(path, languages=languages)


def test_xml_that_attacks_or_is_broken_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    for head, message in (
        ('<!DOCTYPE m [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">]>', r"terms.tbx:2: defines the entity 'a'"),
        (f'<!DOCTYPE m [<!ENTITY x SYSTEM "file://{secret}">]>', r"terms.tbx:1: defines the entity 'x'"),
        ('<!DOCTYPE m [\n<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>', r"terms.tbx:2: defines"),
        ("<m>\n<n></m>", r"terms.tbx:2: is not well-formed XML: mismatched tag"),
        ("", r"terms.tbx:\d+: is not well-formed XML"),
    ):  # fmt: skip
        path.write_text(head + (TBX.split("\n", 2)[2] if "DOCTYPE" in head else ""), encoding="utf-8")
        with pytest.raises(DataError, match=message):
            Glossary.read(path, languages="en:de")
    # An entity that nothing defines: expat may skip it after an external DTD, which would lose text.
    path.write_text(TBX.replace("<term>wheel", "<term>&other;wheel"), encoding="utf-8")
    with pytest.raises(DataError, match=r"terms.tbx:12: uses the entity &other;"):
        Glossary.read(path, languages="en:de")
    with pytest.raises(DataError, match=r"none.tbx: no such file; check the path"):
        Glossary.read(tmp_path / "none.tbx", languages="en:de")
