"""Public corpora and test sets that `get` knows: where they lie, what is in them, and their checksums.

Checksums of WMT's and IWSLT's training data are those that Hugging Face's ``datasets`` published, those of
test sets sacreBLEU's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transduce.data.downloads import Download


@dataclass(frozen=True)
class Text:
    """One side: a file in an archive, by the end of its name; "" where the download itself is the text."""

    download: Download
    member: str = ""


@dataclass(frozen=True)
class Corpus:
    """Source and target of each piece of ``train``, ``valid`` and ``test``."""

    languages: tuple[str, str]
    parts: dict[str, tuple[tuple[Text, Text], ...]]
    note: str
    """What it is, and under which terms."""


_HUB = "https://huggingface.co/datasets"
_EUROPARL = Download(
    f"{_HUB}/wmt/wmt13/resolve/main-zip/training-parallel-europarl-v7.zip",
    sha256="5b2d8b32c2396da739b4e731871c597fcc6e75729becd74619d0712eecf7770e",
)
_COMMONCRAWL = Download(
    f"{_HUB}/wmt/wmt13/resolve/main-zip/training-parallel-commoncrawl.zip",
    sha256="5ffe980072ea29adfd84568d099bea366d9f72772b988e670794ae851b4e5627",
)
_NEWS = Download(
    f"{_HUB}/wmt/wmt14/resolve/main-zip/training-parallel-nc-v9.zip",
    sha256="ce199f93ec56ff480137ba29f0819f9a22e70d88be6d7458f112303d67d623d5",
)
_UN = Download(
    f"{_HUB}/wmt/wmt13/resolve/main-zip/training-parallel-un.zip",
    sha256="74f07002e053c81bc7f73b4fdab58e7987e831338748f264cbda82a8b062d2e2",
)
_GIGA = Download(
    f"{_HUB}/wmt/wmt10/resolve/main-zip/training-giga-fren.zip",
    sha256="9439f86523e5dff3f923526dbf6c6929da1786c18dbf64436d2b7564b83aaba3",
)
_NEWSTEST_2013 = Download("https://statmt.org/wmt13/test.tgz", md5="48eca5d02f637af44e85186847141f67")
_NEWSTEST_2014 = Download("https://statmt.org/wmt14/test-full.tgz", md5="a8cd784e006feb32ac6f3d9ec7eb389a")
_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
_MULTI30K_TESTS = Download(
    f"{_MULTI30K}/multi30k_test_sets_d3ec2a38.tar.gz", md5="9cf8f22d57fee2ca2af3c682dfdc525b"
)
_IWSLT = f"{_HUB}/iwslt2017/resolve/ebd7c60d9800c2a1be010a227e5f0a2363730f7a/data/2017-01-trnted/texts"
_IWSLT_TRAINING = {
    "de": "ebcd53c53c8df742437e3a0fb964772e78764c3f6d4e38df0b6a2f71abc3a8b4",
    "fr": "a40ca3b9a0064bd1fd582df4ced260dd3e7ff9f6f7bf863f139f74b7a5cabd78",
    "ja": "19b394f0256e7398bc69fb27c0fde15cd2a6c372a910ad99707ae32d54371640",
    "ko": "c0cba8c055a9bd55902aff5d61783ddad281df86f2ebb673d97b126b734a0987",
    "zh": "8cecd4e8e196e5cd1e0af48b30e26c36acd33002d1e0f6e448570f68da290258",
}
_WIT3 = "https://raw.githubusercontent.com/hlt-mt/WIT3/master/archive/2017-01-ted-test/texts"
_IWSLT_TESTS = {
    "en-fr": "1849bcc3b006dc0642a8843b11aa7192",
    "fr-en": "79bf7a2ef02d226875f55fb076e7e473",
    "en-de": "b68e7097b179491f6c466ef41ad72b9b",
    "de-en": "e3f5b2a075a2da1a395c8b60bf1e9be1",
    "en-ja": "d957ee79de1f33c89077d37c5a2c5b06",
    "ja-en": "c213e8bb918ebf843543fe9fd2e33db2",
    "en-ko": "59f6a81c707378176e9ad8bb8d811f5f",
    "ko-en": "7e580af973bb389ec1d1378a1850742f",
    "en-zh": "975a858783a0ebec8c57d83ddd5bd381",
    "zh-en": "cc51d9b7fe1ff2af858c6a0dd80b8815",
}
_FLORES = Download(
    "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz",
    sha256="b8b0b76783024b85797e5cc75064eb83fc5288b41e9654dabc7be6ae944011f6",
)


def _wmt14(source: str, target: str) -> Corpus:
    """English to German or French, as in section 5.1: newstest2013 to validate on, newstest2014 to test."""
    other = target

    def texts(download: Download, name: str, ending: str = "") -> tuple[Text, Text]:
        return (
            Text(download, f"{name}.{source}{ending}"),
            Text(download, f"{name}.{target}{ending}"),
        )

    train = [
        texts(_EUROPARL, f"europarl-v7.{other}-en"),
        texts(_COMMONCRAWL, f"commoncrawl.{other}-en"),
        texts(_NEWS, f"news-commentary-v9.{other}-en"),
    ]
    if other == "fr":
        train += [texts(_UN, "undoc.2000.fr-en"), texts(_GIGA, "giga-fren.release2.fixed", ".gz")]
    test = f"newstest2014-{other}en"
    return Corpus(
        (source, target),
        {
            "train": tuple(train),
            "valid": (
                (
                    Text(_NEWSTEST_2013, f"newstest2013-src.{source}.sgm"),
                    Text(_NEWSTEST_2013, f"newstest2013-src.{target}.sgm"),
                ),
            ),
            "test": (
                (
                    Text(_NEWSTEST_2014, f"{test}-src.{source}.sgm"),
                    Text(_NEWSTEST_2014, f"{test}-ref.{target}.sgm"),
                ),
            ),
        },
        "WMT 2014, the training data of the paper; for research (statmt.org/wmt14)",
    )


def _multi30k(source: str, target: str) -> Corpus:
    def texts(name: str) -> tuple[Text, Text]:
        one, other = (Text(Download(f"{_MULTI30K}/raw/{name}.{side}.gz")) for side in (source, target))
        return one, other

    test = (
        Text(_MULTI30K_TESTS, f"test_2016_flickr.{source}"),
        Text(_MULTI30K_TESTS, f"test_2016_flickr.{target}"),
    )
    return Corpus(
        (source, target),
        {"train": (texts("train"),), "valid": (texts("val"),), "test": (test,)},
        "Multi30k, image descriptions; for research (github.com/multi30k/dataset)",
    )


def _iwslt17(source: str, target: str) -> Corpus:
    other = source if target == "en" else target
    training = Download(f"{_IWSLT}/{other}/en/{other}-en.tgz", sha256=_IWSLT_TRAINING[other])

    def test(one: str, two: str) -> Text:
        name = f"{one}-{two}"
        archive = Download(f"{_WIT3}/{one}/{two}/{name}.tgz", md5=_IWSLT_TESTS[name])
        return Text(archive, f"IWSLT17.TED.tst2017.{name}.{one}.xml")

    pair = f"{other}-en"
    return Corpus(
        (source, target),
        {
            "train": (
                (
                    Text(training, f"train.tags.{pair}.{source}"),
                    Text(training, f"train.tags.{pair}.{target}"),
                ),
            ),
            "valid": (
                (
                    Text(training, f"IWSLT17.TED.dev2010.{pair}.{source}.xml"),
                    Text(training, f"IWSLT17.TED.dev2010.{pair}.{target}.xml"),
                ),
            ),
            "test": ((test(source, target), test(target, source)),),
        },
        "IWSLT 2017, TED talks; CC BY-NC-ND 4.0 (wit3.fbk.eu)",
    )


def _flores(source: str, target: str) -> Corpus:
    return Corpus(
        (source, target),
        {
            part: ((Text(_FLORES, f"{name}/{source}.{name}"), Text(_FLORES, f"{name}/{target}.{name}")),)
            for part, name in (("valid", "dev"), ("test", "devtest"))
        },
        "FLORES-200, 204 languages; CC BY-SA 4.0 (github.com/facebookresearch/flores)",
    )


@dataclass(frozen=True)
class Known:
    """A name that `get` takes: the languages it is there in, and which are meant if none are said."""

    make: Callable[[str, str], Corpus]
    pairs: frozenset[tuple[str, str]] | None
    usual: tuple[str, str]


def _with_english(*languages: str) -> frozenset[tuple[str, str]]:
    return frozenset(pair for other in languages for pair in (("en", other), (other, "en")))


_CAPTIONS = ("en", "de", "fr", "cs")
KNOWN = {
    "multi30k": Known(
        _multi30k,
        frozenset((one, other) for one in _CAPTIONS for other in _CAPTIONS if one != other),
        ("en", "de"),
    ),
    "wmt14-ende": Known(_wmt14, frozenset({("en", "de")}), ("en", "de")),
    "wmt14-enfr": Known(_wmt14, frozenset({("en", "fr")}), ("en", "fr")),
    "iwslt17": Known(_iwslt17, _with_english(*_IWSLT_TRAINING), ("en", "de")),
    "flores": Known(_flores, None, ("eng_Latn", "deu_Latn")),
}
