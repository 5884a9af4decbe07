from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fakes import same, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.documents.translate import TranslatedDocument, translate_document
from transduce.errors import DataError

HEADER = """# Kopf
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""


def translated(text: str, function: object = upper) -> str:
    done = translate_document(text.encode(), "po", function)  # type: ignore[arg-type]
    assert done.warnings == ()
    return done.content.decode()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('msgid "open"\nmsgstr ""\n', '#, fuzzy\nmsgid "open"\nmsgstr "OPEN"\n'),
        ('msgid "open"\nmsgstr "auf"\n', 'msgid "open"\nmsgstr "auf"\n'),
        (
            '#: a.c:1\n#, c-format\nmsgctxt "menu"\nmsgid "see %s"\nmsgstr ""',
            '#: a.c:1\n#, fuzzy, c-format\nmsgctxt "menu"\nmsgid "see %s"\nmsgstr "SEE %s"',
        ),
        (
            '#, c-format, fuzzy\n#| msgid "old"\nmsgid "new"\nmsgstr "" \n',
            '#, c-format, fuzzy\n#| msgid "old"\nmsgid "new"\nmsgstr "NEW"\n',
        ),
        (
            '#. note\n#| msgid "old"\nmsgid "new"\nmsgstr ""\n',
            '#. note\n#, fuzzy\n#| msgid "old"\nmsgid "new"\nmsgstr "NEW"\n',
        ),
        ('#~ msgid "gone"\n#~ msgstr ""\n', '#~ msgid "gone"\n#~ msgstr ""\n'),
        (
            'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n',
            '#, fuzzy\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d FILE"\nmsgstr[1] "%d FILES"\n',
        ),
        (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""\n',
            '#, fuzzy\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] "B"\n',
        ),
        ('msgid "&Open..."\nmsgstr ""\n', '#, fuzzy\nmsgid "&Open..."\nmsgstr "&OPEN..."\n'),
        ('msgid "Save _As"\nmsgstr ""\n', '#, fuzzy\nmsgid "Save _As"\nmsgstr "SAVE _AS"\n'),
        ('msgid "AT&T & co"\nmsgstr ""\n', '#, fuzzy\nmsgid "AT&T & co"\nmsgstr "AT&T & CO"\n'),
        (
            'msgid "a &lt;b&gt; &amp; c"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "a &lt;b&gt; &amp; c"\nmsgstr "A &lt;b&gt; &amp; C"\n',
        ),
        # What stands both as itself and as an entity is left alone.
        (
            'msgid "it&#39;s <b>c</b> &#60;"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "it&#39;s <b>c</b> &#60;"\nmsgstr "IT&#39;S <b>C</b> &#60;"\n',
        ),
        # The flags are those of an obsolete entry.
        (
            '#, fuzzy\n#~ msgid "x"\n#~ msgstr ""\nmsgid "new"\nmsgstr ""\n',
            '#, fuzzy\n#~ msgid "x"\n#~ msgstr ""\n#, fuzzy\nmsgid "new"\nmsgstr "NEW"\n',
        ),
        (
            'msgid "one\\n\\n  two\\tthree\\n"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "one\\n\\n  two\\tthree\\n"\nmsgstr ""\n"ONE\\n"\n"\\n"\n"  TWO\\tTHREE\\n"\n',
        ),
        (
            'msgid "  -v, --verbose   say more"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "  -v, --verbose   say more"\nmsgstr "  -v, --verbose   SAY MORE"\n',
        ),
        (
            'msgid "a \\"b\\" \\\\"\nmsgstr ""\n',
            '#, fuzzy\nmsgid "a \\"b\\" \\\\"\nmsgstr "A \\"B\\" \\\\"\n',
        ),
        ('msgid "%s\\t%d\\n"\nmsgstr ""\n', '#, fuzzy\nmsgid "%s\\t%d\\n"\nmsgstr "%s\\t%d\\n"\n'),
        ('msgid "&1"\nmsgstr ""\n', '#, fuzzy\nmsgid "&1"\nmsgstr "&1"\n'),
        ('msgid "%s"\nmsgstr ""\n', '#, fuzzy\nmsgid "%s"\nmsgstr "%s"\n'),
    ],
)
def test_entries_without_a_translation_are_filled_in_and_marked(entry: str, expected: str) -> None:
    assert translated(HEADER + entry) == HEADER + expected
    crlf = (HEADER + entry).replace("\n", "\r\n")
    assert translated(crlf).replace(" \r\n", "\r\n") == (HEADER + expected).replace("\n", "\r\n")


def test_long_messages_are_written_over_several_rows_as_their_source_is() -> None:
    words = "word " * 40
    entry = f'msgid ""\n"{words[:60]}"\n"{words[60:].strip()}"\nmsgstr ""\n'
    new = translated(HEADER + entry)
    rows = new.split("msgstr ")[-1].split("\n")
    assert rows[0] == '""'
    assert "".join(row.strip('"') for row in rows[1:]) == words.strip().upper()
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize(
    ("plural", "sources"),
    [
        ("nplurals=1; plural=0;", "b"),
        ("nplurals=2; plural=n>1;", "ab"),
        ("nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);", "abb"),
        ("nplurals=4; plural=(n==1) ? 1 : 2;", "babb"),
        ("nplurals=2; plural=n/0;", "ab"),
        ("nplurals=2; plural=__import__('os');", "ab"),
        ("nplurals=9999; plural=0;", "ab"),
    ],
)
def test_the_form_that_one_thing_takes_is_made_of_the_singular(plural: str, sources: str) -> None:
    header = HEADER.replace("nplurals=2; plural=(n != 1);", plural)
    count = 1 if len(sources) == 1 else 2
    there = "".join(f'msgstr[{form}] ""\n' for form in range(count))
    new = translated(f'{header}msgid "a"\nmsgid_plural "b"\n{there}')
    forms = "".join(f'msgstr[{form}] "{source.upper()}"\n' for form, source in enumerate(sources))
    assert new.endswith(f'msgid_plural "b"\n{forms}')


def test_what_is_lost_is_told_by_its_line() -> None:
    text = f'{HEADER}msgid "open %s"\nmsgstr ""\n'
    done = translate_document(text.encode(), "po", lambda texts: ["zu"], name="a.po")
    assert done.warnings == ("a.po:7: lost: %s (in the source 1, in the output 0)",)
    assert done.filled == 1


@pytest.mark.parametrize(
    ("source", "output", "told"),
    [
        ("%s on %d", "%d auf %s", ["a.po:7: in another order: %d %s (in the source %s %d)"]),
        ("{} on {1}", "{1} auf {}", []),
        ("%1$s on %2$d", "%2$d auf %1$s", []),
        ("%(a)s on %(b)s", "%(b)s auf %(a)s", []),
        ("%s on %s", "%s auf %s", []),
    ],
)
def test_placeholders_that_are_filled_by_their_order_must_keep_it(
    source: str, output: str, told: list[str]
) -> None:
    text = f'{HEADER}msgid "{source}"\nmsgstr ""\n'
    done = translate_document(text.encode(), "po", lambda texts: [output], name="a.po")
    assert list(done.warnings) == told


def test_an_empty_translation_is_told_and_nothing_filled_in() -> None:
    text = f'{HEADER}msgid "open"\nmsgstr ""\n'
    done = translate_document(text.encode(), "po", lambda texts: [""], name="a.po")
    assert done == TranslatedDocument(
        text.encode(), 0, 1, ("a.po:7: the translation is empty; nothing is filled in",)
    )
    assert done.summary == "0 of 1 unit filled in"
    two = f'{text}\nmsgid "close"\nmsgstr ""\n\nmsgid "done"\nmsgstr "fertig"\n'
    done = translate_document(two.encode(), "po", lambda texts: ["", "zu"], name="a.po")
    assert (done.filled, done.units, done.summary) == (1, 2, "1 of 2 units filled in")


def test_lines_that_were_filled_up_are_joined_and_broken_again() -> None:
    long = "this option chooses how many lines are held\\nat a time while the file is read.\\nNext line.\\n"
    heard: list[str] = []
    text = f'{HEADER}msgid "{long}"\nmsgstr ""\n'
    new = translate_document(text.encode(), "po", lambda texts: (heard.extend(texts), upper(texts))[1])
    assert heard == [
        "this option chooses how many lines are held at a time while the file is read.",
        "Next line.",
    ]
    rows = new.content.decode().split("msgstr ")[-1].split("\n")[:-1]
    assert "".join(row.strip('"') for row in rows) == long.upper().replace("\\N", "\\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', r"x.po:2: the string is not in quotes"),
        ('msgid "a"\n\nmsgstr "b"\n', r"x.po:3: the entry before lacks msgid or msgstr"),
        ("hello\n", r"x.po:1: expected msgid.*found 'hello'"),
    ],
)
def test_what_is_no_catalog_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translate_document(text.encode(), "po", same, name="x.po")


def test_a_charset_that_lacks_a_letter_is_refused_and_latin_1_kept() -> None:
    text = HEADER.replace("UTF-8", "ISO-8859-1") + '# \xe4\nmsgid "a"\nmsgstr ""\n'
    new = translate_document(text.encode("latin-1"), "po", lambda texts: ["\xe4"]).content
    assert new == text.replace('msgid "a"\nmsgstr ""', '#, fuzzy\nmsgid "a"\nmsgstr "ä"').encode("latin-1")
    with pytest.raises(DataError, match="ISO-8859-1 has no '€'"):
        translate_document(text.encode("latin-1"), "po", lambda texts: ["€"])


WORDS = st.text(st.sampled_from('ab %é\\"\t'), min_size=1, max_size=9)
COMMENTS = st.lists(
    st.sampled_from(["# x", "#. y", "#: a.c:1 b.c:2", "#, c-format", '#| msgid "z"']), max_size=3
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(COMMENTS, WORDS, st.sampled_from(["", "there"])), max_size=5), st.booleans())
def test_all_bytes_outside_of_what_is_filled_in_stay(
    entries: list[tuple[list[str], str, str]], at_end: bool
) -> None:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")

    before, lines = HEADER, HEADER.split("\n")[:-1]
    for number, (comments, words, there) in enumerate(entries):
        rows = [*comments, f'msgid "{quoted(words)}{number}x"', f'msgstr "{there}"', ""]
        before += "\n".join(rows) + "\n"
        lines += rows
    before = before.rstrip("\n") if at_end else before
    after = translate_document(before.encode(), "po", upper).content.decode().split("\n")
    # Taking out the flags and emptying what was filled in gives the catalog again.
    undone = []
    for line in after:
        if line == "#, fuzzy":
            continue
        if line.startswith('msgstr "') and line not in ('msgstr ""', 'msgstr "there"'):
            line = 'msgstr ""'
        undone.append(line.replace("#, fuzzy, ", "#, "))
    assert "\n".join(undone) == before
    filled = sum(not there for _, _, there in entries)
    assert sum("fuzzy" in line for line in after) >= filled


CATALOGS = sorted(Path("/usr/share/locale/de/LC_MESSAGES").glob("*.mo"))[:12]


@pytest.mark.skipif(not CATALOGS or not shutil.which("msgunfmt"), reason="no gettext catalogs or tools here")
@pytest.mark.parametrize("catalog", CATALOGS, ids=lambda path: path.stem)
def test_real_catalogs_stay_as_they_are_and_are_valid_when_filled(catalog: Path, tmp_path: Path) -> None:
    text = subprocess.run(["msgunfmt", catalog], capture_output=True, check=True).stdout
    assert translate_document(text, "po", upper).content == text
    # Every other entry on one line loses its translation.
    blocks = text.decode().split("\n\n")
    for at in range(1, len(blocks), 2):
        blocks[at] = re.sub(r'(?m)^(msgstr(?:\[\d\])?) ".+"$', r'\1 ""', blocks[at])
    emptied = "\n\n".join(blocks)
    path = tmp_path / "x.po"
    path.write_bytes(translate_document(emptied.encode(), "po", upper).content)
    done = subprocess.run(
        ["msgfmt", "--use-fuzzy", "-o", "/dev/null", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
