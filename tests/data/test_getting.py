"""`transduce corpus get` against a server of this machine: whole, cut off, changed, not there."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from transduce.cli.main import main
from transduce.data import getting, known_corpora
from transduce.data.downloads import Download, fetch
from transduce.data.getting import get
from transduce.data.known_corpora import KNOWN, Corpus, Text
from transduce.data.lines import read_lines
from transduce.errors import ConfigError, DataError, UsageError


class Server:
    """Files by their paths; ``cut`` breaks off each answer after so many bytes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut = 0
        self.ranges = True
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range", "")
                outer.asked.append((self.path, asked))
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and outer.ranges else 0
                if begin and begin >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(content) - begin))
                self.end_headers()
                self.wfile.write(content[begin:][: outer.cut or None])

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


CONTENT = bytes(range(256)) * 500


def test_a_download_that_breaks_off_goes_on(server: Server, tmp_path: Path) -> None:
    server.files["/f.bin"] = CONTENT
    server.cut = 50_000
    one = Download(f"{server.url}/f.bin", sha256=hashlib.sha256(CONTENT).hexdigest())
    assert fetch(one, tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in server.asked] == ["", "bytes=50000-", "bytes=100000-"]
    server.asked.clear()
    assert fetch(one, tmp_path).read_bytes() == CONTENT
    assert server.asked == [], "what is there is not fetched again"


def test_what_has_come_is_kept_for_the_next_call(server: Server, tmp_path: Path) -> None:
    server.files["/f.bin"] = CONTENT
    server.cut = 10_000
    one = Download(f"{server.url}/f.bin")
    with pytest.raises(DataError, match=r"f.bin: cannot be reached .*what has come is kept"):
        fetch(one, tmp_path)
    assert (tmp_path / f"{one.name}.part").stat().st_size == 30_000
    server.cut = 0
    said: list[str] = []
    assert fetch(one, tmp_path, say=said.append).read_bytes() == CONTENT
    assert server.asked[-1] == ("/f.bin", "bytes=30000-")
    assert said == [
        f"{one.name}: no checksum is published; sha256 {hashlib.sha256(CONTENT).hexdigest()} was noted"
    ]


def test_a_server_that_cannot_go_on_begins_anew(server: Server, tmp_path: Path) -> None:
    server.files["/f.bin"] = CONTENT
    server.ranges = False
    one = Download(f"{server.url}/f.bin")
    (tmp_path / f"{one.name}.part").write_bytes(b"something else")
    assert fetch(one, tmp_path).read_bytes() == CONTENT


def test_another_file_than_is_known_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    server.files["/f.bin"] = CONTENT
    for one in (
        Download(f"{server.url}/f.bin", sha256="0" * 64),
        Download(f"{server.url}/f.bin", md5="0" * 32),
    ):
        with pytest.raises(
            DataError, match=r"f.bin: is not the file that is known \(\w+ \w+, expected 0+\); it was removed"
        ):
            fetch(one, tmp_path)
    assert not [path for path in tmp_path.iterdir() if "f.bin" in path.name]
    one = Download(f"{server.url}/f.bin")
    fetch(one, tmp_path).unlink()
    server.files["/f.bin"] = CONTENT[::-1]
    with pytest.raises(DataError, match=r"is not the file that is known \(sha256"):
        fetch(one, tmp_path)


def test_errors_of_the_network_are_one_line_with_a_way_out(server: Server, tmp_path: Path) -> None:
    one = Download(f"{server.url}/none.tgz")
    with pytest.raises(
        DataError, match=r"none.tgz: the server answers 404 .*fetch it elsewhere and put it at .*none.tgz$"
    ):
        fetch(one, tmp_path)
    with pytest.raises(
        DataError, match=r"http://127.0.0.1:9/x.tgz: cannot be reached \(.*refused.*\); .*put it at"
    ):
        fetch(Download("http://127.0.0.1:9/x.tgz"), tmp_path)


def test_a_file_that_was_put_there_by_hand_is_checked_too(tmp_path: Path) -> None:
    one = Download("http://127.0.0.1:9/x.tgz", sha256=hashlib.sha256(b"x").hexdigest())
    (tmp_path / one.name).write_bytes(b"x")
    assert fetch(one, tmp_path).read_bytes() == b"x"
    (tmp_path / "checksums.json").unlink()
    (tmp_path / one.name).write_bytes(b"y")
    with pytest.raises(DataError, match="is not the file that is known"):
        fetch(one, tmp_path)


SGM = '<{0} setid="t" srclang="any" trglang="de">\n<doc docid="a"><seg id="1">{1} one</seg>\n'
SGM += '<seg id="2">{1} two</seg></doc></{0}>\n'


def tar(files: dict[str, str]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return raw.getvalue()


def packed(files: dict[str, str]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return raw.getvalue()


def archives() -> dict[str, bytes]:
    """By the beginning of a download's name: small archives that are laid out as the real ones."""
    return {
        "training-parallel-europarl-v7.zip": packed(
            {
                "training/europarl-v7.de-en.en": "euro 1\neuro 2\n",
                "training/europarl-v7.de-en.de": "Euro 1\nEuro 2\n",
            }
        ),
        "training-parallel-commoncrawl.zip": packed(
            {"commoncrawl.de-en.en": "crawl\u2028\n", "commoncrawl.de-en.de": "Kraul\n"}
        ),
        "training-parallel-nc-v9.zip": packed(
            {
                "training/news-commentary-v9.de-en.de": "Neues\n",
                "training/news-commentary-v9.de-en.en": "news\n",
            }
        ),
        "test.tgz": tar(
            {
                "test/newstest2013-src.en.sgm": SGM.format("srcset", "valid"),
                "test/newstest2013-src.de.sgm": SGM.format("srcset", "gültig"),
            }
        ),
        "test-full.tgz": tar(
            {
                "test-full/newstest2014-deen-src.en.sgm": SGM.format("srcset", "test"),
                "test-full/newstest2014-deen-ref.de.sgm": SGM.format("refset", "Probe"),
            }
        ),
        "multi30k_test_sets_d3ec2a38.tar.gz": tar(
            {"test_2016_flickr.en": "tested\n", "test_2016_flickr.de": "getestet\n"}
        ),
        "train.en.gz": gzip.compress(b"a dog\n"),
        "train.de.gz": gzip.compress(b"ein Hund\n"),
        "val.en.gz": gzip.compress(b"a cat\n"),
        "val.de.gz": gzip.compress(b"eine Katze\n"),
        "flores200_dataset.tar.gz": tar(
            {
                f"flores200_dataset/{part}/{name}.{part}": f"{name} {part}\n"
                for part in ("dev", "devtest")
                for name in ("eng_Latn", "deu_Latn")
            }
        ),
        "de-en.tgz": tar(
            {
                "de-en/train.tags.de-en.en": "<url>x</url>\n<title>T</title>\n Hello. \n</t>\nBye.\n",
                "de-en/train.tags.de-en.de": "<url>x</url>\n<title>R</title>\n Hallo. \n</t>\nTschüs.\n",
                "de-en/IWSLT17.TED.dev2010.de-en.en.xml": SGM.format("srcset", "dev"),
                "de-en/IWSLT17.TED.dev2010.de-en.de.xml": SGM.format("refset", "Entw"),
                "de-en/IWSLT17.TED.tst2017.de-en.de.xml": SGM.format("srcset", "Test"),
            }
        ),
        "en-de.tgz": tar({"en-de/IWSLT17.TED.tst2017.en-de.en.xml": SGM.format("srcset", "test")}),
    }


@pytest.fixture
def mirror(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server as a mirror of small archives, whose checksums are no reason to refuse them."""
    made = archives()
    for known in KNOWN.values():
        corpus = known.make(*known.usual)
        for text in _texts(corpus):
            path = text.download.at("")
            found = next((content for ending, content in made.items() if path.endswith(f"/{ending}")), None)
            if found is not None:
                server.files[text.download.at(server.url).removeprefix(server.url)] = found
    real = getting.fetch
    monkeypatch.setattr(getting, "fetch", lambda one, *rest, **more: real(Download(one.url), *rest, **more))
    return server.url


def _texts(corpus: Corpus) -> list[Text]:
    return [text for part in corpus.parts.values() for both in part for text in both]


@pytest.mark.parametrize(
    ("name", "train", "valid", "test"),
    [
        ("multi30k", ["a dog|ein Hund"], ["a cat|eine Katze"], ["tested|getestet"]),
        (
            "wmt14-ende",
            ["euro 1|Euro 1", "euro 2|Euro 2", "crawl\u2028|Kraul", "news|Neues"],
            ["valid one|gültig one", "valid two|gültig two"],
            ["test one|Probe one", "test two|Probe two"],
        ),
        ("iwslt17", ["Hello.|Hallo.", "Bye.|Tschüs."], ["dev one|Entw one", "dev two|Entw two"],
         ["test one|Test one", "test two|Test two"]),
        ("flores", None, ["eng_Latn dev|deu_Latn dev"], ["eng_Latn devtest|deu_Latn devtest"]),
    ],
)  # fmt: skip
def test_each_corpus_becomes_aligned_text(
    mirror: str, tmp_path: Path, name: str, train: list[str] | None, valid: list[str], test: list[str]
) -> None:
    got = get(name, tmp_path, mirror=mirror)
    parts = {"train": train, "valid": valid, "test": test}
    for part, expected in parts.items():
        if expected is None:
            assert part not in got.pairs
            continue
        files = [list(read_lines(tmp_path / f"{part}.{language}")) for language in got.languages]
        assert ["|".join(both) for both in zip(*files, strict=True)] == expected
        assert got.pairs[part] == len(expected)
    assert all(
        "." in path.name and not path.name.endswith((".sgm", ".xml", ".en"))
        for path in (tmp_path / "downloads").iterdir()
    )


def test_the_command(mirror: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "get", "multi30k", "--output", str(tmp_path / "m"), "--mirror", mirror]) == 0
    said = capsys.readouterr().err
    assert f"{tmp_path / 'm'}: 1 pair in train.en and train.de" in said
    assert "for research (github.com/multi30k/dataset)" in said


def test_names_and_languages_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no corpus 'multi30'; did you mean 'multi30k'"):
        get("multi30", tmp_path)
    with pytest.raises(UsageError, match=r"wmt14-ende is not there from en to fr; it is there in en-de"):
        get("wmt14-ende", tmp_path, target_language="fr")


def test_texts_that_do_not_belong_together_are_named(mirror: str, server: Server, tmp_path: Path) -> None:
    name = next(path for path in server.files if path.endswith("train.de.gz"))
    server.files[name] = gzip.compress(b"ein Hund\nzwei\n")
    with pytest.raises(
        DataError, match=r"train.en.gz has 1 line but \S*train.de.gz has 2: they are not aligned"
    ):
        get("multi30k", tmp_path, mirror=mirror)
    assert not (tmp_path / "train.en").exists()
    server.files[name] = gzip.compress(b"ein Hund\n")
    server.files[next(path for path in server.files if "test_sets" in path)] = b"no archive"
    with pytest.raises(DataError, match=r"is a damaged archive .*; remove it and get it again"):
        get("multi30k", tmp_path / "b", mirror=mirror)


def test_every_download_is_checked_or_known_not_to_be() -> None:
    unchecked = set()
    for name, known in KNOWN.items():
        for pair in known.pairs or {known.usual}:
            corpus = known.make(*pair)
            assert set(corpus.parts) <= {"train", "valid", "test"}
            for text in _texts(corpus):
                one = text.download
                assert one.url.startswith("https://")
                assert len(one.sha256) in (0, 64)
                assert len(one.md5) in (0, 32)
                if not (one.sha256 or one.md5):
                    unchecked.add(name)
    assert unchecked == {"multi30k"}
    assert known_corpora.KNOWN is KNOWN


def test_mtdata_is_asked_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError,
        match=r"mtdata:A-b-1-deu-eng needs the command mtdata; install it with `pipx install mtdata`",
    ):
        get("mtdata:A-b-1-deu-eng", tmp_path / "o")
    command = tmp_path / "mtdata"
    command.write_text(
        "#!/bin/sh\n[ \"$1 $2\" = 'echo A-b-1-deu-eng' ] || { echo 'unknown id' >&2; exit 3; }\n"
        "printf 'eins\\tone\\n'\n"
    )
    command.chmod(0o755)
    got = get("mtdata:A-b-1-deu-eng", tmp_path / "o")
    assert (got.pairs, got.languages) == ({"train": 1}, ("deu", "eng"))
    assert (tmp_path / "o" / "train.deu").read_text() == "eins\n"
    with pytest.raises(DataError, match=r"mtdata:other: mtdata ended with 3: unknown id"):
        get("mtdata:other", tmp_path / "p")
