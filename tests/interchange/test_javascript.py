"""The exported tokenizer and model in JavaScript, run by a real Node, against ours."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_translator import save_tiny, sentences, tokenizer

from transduce import Translator, export_model
from transduce.data.tokenizer import Tokenizer
from transduce.interchange.subword_list import subword_list

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "src" / "transduce" / "interchange" / "javascript"
NODE = shutil.which("node")
MODULES = Path(os.environ.get("TRANSDUCE_NODE_MODULES", ROOT / "node_modules"))
needs_node = pytest.mark.skipif(NODE is None, reason="needs node: install the package nodejs of your system")
needs_runtime = pytest.mark.skipif(
    not (MODULES / "onnxruntime-web").is_dir(),
    reason="needs onnxruntime-web: npm install --no-save --ignore-scripts onnxruntime-web",
)
SHORT: dict[str, Any] = {"max_extra": 4}
LINES = [*sentences(3, seed=4, words=(1, 4)), "", "\x1f  Ä 😀\u2581\ue000 \ufeff\u3000", "a\u0301 ﬁ \0"]


def run(script: str, folder: Path, *, given: str = "") -> str:
    """What a script says in ``folder``, which finds the packages of npm there."""
    (folder / "script.mjs").write_text(script, encoding="utf-8")
    if MODULES.is_dir() and not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(MODULES)
    assert NODE is not None
    done = subprocess.run(
        [NODE, "script.mjs"], cwd=folder, input=given, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def odd_texts(count: int) -> list[str]:
    """Texts of all kinds of characters, drawn the same way each time."""
    draw = random.Random(1)
    kinds = [
        [chr(code) for code in range(128)],
        list(" \t\u00a0\u3000\u2581\ue000\ufffd\ufeff01\u0301e"),
        list("ﬁ①ﾊﾝｶｸ½℀Åé中文日本語한국어👨👩\u200d\ufe0f🇩🇪"),
        ["<s>", "</s>", "<0x41>", "<2de>", "<unk>", "<pad>", " ", "  ", *"abdeghilmn."],
        ["ab", "de", "gh", " ", *"abdeghilmnorstuvw"],
    ]
    texts = ["", " ", "   ", "\0", "\n", "\r\n", "a\nb", *sentences(20, seed=3)]
    for _ in range(count):
        length = draw.randrange(40)
        if draw.random() < 0.2:
            codes = (
                draw.choice((draw.randrange(0xD800), draw.randrange(0xE000, 0x110000))) for _ in "x" * length
            )
            texts.append("".join(map(chr, codes)))
        else:
            texts.append("".join(draw.choices(draw.choice(kinds), k=length)))
    return texts


def odd_ids(it: Tokenizer, count: int) -> list[list[int]]:
    """Sequences of ids: any, mostly bytes that may or may not be UTF-8, and halves of escapes."""
    draw = random.Random(2)
    first = it.bytes_of("\0")[0]
    tricky = [
        first + byte
        for byte in b"\x80\xbf\xc0\xc3\xe2\x82\xac\xf0\x9f\x98\xed\xa0\xe0\xf4\x90A\n\xef\xbb\xbf"
    ]
    pieces = [*it.encode("\ue000")[1:], *it.encode("1"), *it.encode("0"), it.vocabulary - 1, 300]
    kinds = [list(range(it.vocabulary + 3)), [*tricky, 300], pieces]
    return [draw.choices(draw.choice(kinds), k=draw.randrange(20)) for _ in range(count)]


ENCODE = """
import { readFileSync } from "node:fs";
import { Tokenizer } from "./tokenizer.mjs";
const given = JSON.parse(readFileSync(0, "utf8"));
const said = Object.entries(given.tokenizers).map(([name, { pieces, ids }]) => {
  const tokenizer = new Tokenizer(pieces);
  const encoded = given.texts.map((text) => tokenizer.encode(text));
  return [name, { ids: encoded, texts: ids.map((one) => tokenizer.decode(one)) }];
});
let refused = "";
const first = new Tokenizer(Object.values(given.tokenizers)[0].pieces);
try { first.encode("a\\ud800"); } catch (error) { refused = error.message; }
console.log(JSON.stringify({ refused, ...Object.fromEntries(said) }));
"""


@needs_node
def test_the_tokenizer_gives_the_ids_and_texts_of_ours(tmp_path: Path) -> None:
    own = {
        "bpe": tokenizer(),
        "unigram": Tokenizer.train(sentences(300), 320, subwords="unigram"),
        "tagged": Tokenizer.train(sentences(300), 330, tags=["<2de>"]),
    }
    texts, ids = odd_texts(400), {name: odd_ids(it, 600) for name, it in own.items()}
    shutil.copy(SCRIPTS / "tokenizer.mjs", tmp_path)
    given = {name: {"pieces": subword_list(it), "ids": ids[name]} for name, it in own.items()}
    said = json.loads(run(ENCODE, tmp_path, given=json.dumps({"texts": texts, "tokenizers": given})))
    assert "half of a surrogate pair" in said["refused"]
    for name, it in own.items():
        for text, found, expected in zip(texts, said[name]["ids"], it.encode_batch(texts), strict=True):
            assert found == expected, (name, text)
        for one, text in zip(ids[name], said[name]["texts"], strict=True):
            assert text == it.decode(one), (name, one)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'transduce[export]'")
    pytest.importorskip("onnx", reason="needs onnx: pip install 'transduce[export]'")
    folder = tmp_path_factory.mktemp("javascript")
    save_tiny(folder / "model", max_length=30)
    for name, precision in (("model-onnx", "float32"), ("int8", "int8")):
        export_model(folder / "model", folder / name, to="onnx", precision=precision)
        described = json.loads((folder / name / "config.json").read_bytes())
        (folder / name / "config.json").write_text(json.dumps({**described, **SHORT}), encoding="utf-8")
    return folder


TRANSLATE = """
import * as ort from "onnxruntime-web";
import { readFileSync } from "node:fs";
import { Translator } from "./model-onnx/translate.mjs";
const { lines, long } = JSON.parse(readFileSync(0, "utf8"));
const said = {};
const greedy = { beam: 1 };
for (const [folder, options] of [["model-onnx", greedy], ["int8", greedy], ["int8", { beam: 3, alpha: 1 }]]) {
  const translator = await Translator.load(ort, folder);
  const key = `${folder} ${options.beam}`;
  said[key] = [];
  for (const line of lines) said[key].push(await translator.translate(line, options));
  try { await translator.translate(long); } catch (error) { said.long = error.message; }
  try { await translator.translate("a", { to: "de" }); } catch (error) { said.tag = error.message; }
}
console.log(JSON.stringify(said));
"""


@needs_node
@needs_runtime
def test_greedy_and_beam_search_say_what_ours_do(folder: Path) -> None:
    long = " ".join(["ab"] * 40)
    said = json.loads(run(TRANSLATE, folder, given=json.dumps({"lines": LINES, "long": long})))
    exact, rounded = (Translator.load(folder / name, device="cpu") for name in ("model-onnx", "int8"))
    ours = Translator.load(folder / "model", device="cpu", engine="torch")
    assert said["model-onnx 1"] == ours.translate(LINES, beam=1, **SHORT)
    assert said["model-onnx 1"] == exact.translate(LINES, beam=1, **SHORT)
    assert said["int8 1"] == rounded.translate(LINES, beam=1, **SHORT)
    assert said["int8 3"] == rounded.translate(LINES, beam=3, alpha=1.0, **SHORT)
    assert re.fullmatch(r"the line has \d+ tokens, the model takes 30; split it", said["long"])
    assert said["tag"] == "the model has no tag <2de>"


@needs_node
@needs_runtime
def test_the_program_of_the_guide_translates_lines(folder: Path) -> None:
    guide = (ROOT / "docs" / "onnx.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```js\n(// translate-lines.*?)^```$", guide, re.M | re.S)
    said = run(program, folder, given="".join(f"{line}\n" for line in LINES[:4]))
    translator = Translator.load(folder / "model-onnx", device="cpu")
    assert said.split("\n")[:-1] == translator.translate(LINES[:4], **SHORT)
