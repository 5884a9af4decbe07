"""Argos packages: what is in them, and argostranslate itself where it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tiny_translator import save_tiny, sentences, tokenizer
from transduce import export_model, verify
from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, UsageError
from transduce.interchange.argos_format import Argos, languages_of

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ctranslate2") is None,
    reason="needs ctranslate2: pip install 'transduce[export]'",
)
# A Python with argostranslate, which brings its own torch and stanza along: too heavy for this environment.
PYTHON = os.environ.get("ARGOS_PYTHON", "")

TRANSLATE = """
import sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
found = translate.get_translation_from_codes("en", "de")
found = getattr(found, "underlying", found)
# Its own splitter is fetched from the network when it is first used.
found.sentencizer.split_sentences = lambda text: [text]
for line in sys.stdin.read().split("\\n"):
    print(found.translate(line))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_tiny(tmp_path_factory.mktemp("models") / "model", seed=5))


@pytest.fixture(scope="module")
def package(model: Path) -> Path:
    told: list[str] = []
    path = model.with_name("translate-en_de.argosmodel")
    found = export_model(model, path, to="argos", say=told.append)
    assert found.comparison.largest < 1e-4
    assert "length^0.2" in told[0]
    return path


def test_a_package_holds_what_argos_asks_for(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = set(archive.namelist())
        folder = "translate-en_de-1_0"
        about = json.loads(archive.read(f"{folder}/metadata.json"))
        assert archive.read(f"{folder}/sentencepiece.model") == tokenizer().model_bytes
    inside = {"README.md", "metadata.json", "sentencepiece.model"}
    assert {f"{folder}/{name}" for name in inside} < names
    assert {
        f"{folder}/model/{name}" for name in ("model.bin", "config.json", "shared_vocabulary.json")
    } < names
    assert (about["from_code"], about["from_name"]) == ("en", "English")
    assert (about["to_code"], about["to_name"], about["type"]) == ("de", "German", "translate")
    assert [path.name for path in package.parent.iterdir() if path.name.startswith(".")] == []


def test_it_can_be_verified_like_any_other(model: Path, package: Path) -> None:
    found = verify(model, package)
    assert found.good
    assert found.sizes[1] == package.stat().st_size
    torn = package.with_name("torn.zip")
    torn.write_bytes(package.read_bytes()[:-100])
    with pytest.raises(BundleError, match="no model of a format that is known"):
        verify(model, torn)


@pytest.mark.parametrize(
    ("name", "codes"),
    [("translate-en_de.argosmodel", ("en", "de")), (".hsb_cs-1_0.x.17.tmp", ("hsb", "cs"))],
)
def test_the_name_tells_the_languages(name: str, codes: tuple[str, str]) -> None:
    assert languages_of(name) == codes


def test_a_name_without_languages_and_a_model_of_several_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"read from its name: .* translate-en_de\.argosmodel"):
        export_model(model, tmp_path / "small.argosmodel", to="argos")
    from transduce.bundle import load_bundle

    several = Tokenizer.train(sentences(300), 330, tags=("<2de>", "<2fr>"))
    bundle = Bundle(model=load_bundle(model).model, tokenizer=several, training={})
    with pytest.raises(UsageError, match=r"one of several by tags \(<2de>, <2fr>\)"):
        Argos().write(bundle, tmp_path / "en_de", "float32")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not PYTHON, reason="needs ARGOS_PYTHON, a Python that has argostranslate")
def test_argos_itself_installs_it_and_translates(package: Path, tmp_path: Path) -> None:
    import ctranslate2

    lines = sentences(3, seed=9)
    # On a CPU it would compute in int8, as fast as it can.
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARGOS_COMPUTE_TYPE": "float32"}
    done = subprocess.run(
        [PYTHON, "-c", TRANSLATE, str(package)], input="\n".join(lines), env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    peer = ctranslate2.Translator(str(tmp_path / "translate-en_de-1_0" / "model"), compute_type="float32")
    own = tokenizer()
    found = peer.translate_batch([own.pieces(line) for line in lines], beam_size=4, length_penalty=0.2)
    ids = {own.piece(i): i for i in range(own.vocabulary)}
    expected = [own.decode([ids[piece] for piece in one.hypotheses[0]]).strip() for one in found]
    assert [line.strip() for line in done.stdout.splitlines()] == expected
