import math
import warnings
from types import SimpleNamespace

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from transduce.errors import DataError
from transduce.evaluation.scores import score, tokenised_sign

SYSTEMS = {
    "newstest2013.en-de.bergamot-base-memory.de": "newstest2013.de",
    "newstest2013.en-fr.bergamot-base-memory.fr": "newstest2013.fr",
    "newstest2014.en-de.bergamot-base-memory.de": "newstest2014.en-de.filtered2737.de",
    "newstest2014.en-fr.bergamot-base-memory.fr": "newstest2014.en-fr.fr",
    "newstest2017.en-de.rnn.opennmt-py.de": "newstest2017.en-de.de",
    "newstest2017.en-de.transformer.marian.de": "newstest2017.en-de.de",
    "newstest2017.en-de.transformer.tensor2tensor.de": "newstest2017.en-de.de",
}
CAT = "the cat sat on the mat ."


def without_counting(metric, *_):
    metric.num_refs = 1
    return SimpleNamespace(score=0.0)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_published_scores_are_reproduced_to_the_printed_decimal(system, newstest, monkeypatch):
    # The other score is not published, and takes longer than BLEU.
    monkeypatch.setattr(CHRF, "corpus_score", without_counting)
    output, reference, published = newstest(system, SYSTEMS[system])
    scores = score(output, reference, ter=False)
    decimals = len(published.partition(".")[2])
    assert f"{scores.bleu:.{decimals}f}" == published
    assert scores.sentences == len(output)


def test_a_perfect_translation():
    lines = ["Der Hund schläft.", "Die Katze sitzt auf der Matte."]
    scores = score(lines, lines)
    assert (scores.bleu, scores.chrf, scores.ter) == (pytest.approx(100), pytest.approx(100), 0)
    assert scores.brevity_penalty == 1
    assert scores.hypothesis_length == scores.reference_length == 4 + 7
    assert scores.precisions == (100, 100, 100, 100)


def test_a_score_by_hand():
    # 1-grams 5/6, 2-grams 3/5, 3-grams 2/4, 4-grams 1/3; one of six words must be changed.
    scores = score(["the cat sat on the mat"], ["the cat sat on a mat"])
    assert scores.bleu == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert scores.ter == pytest.approx(100 / 6)


def test_short_translations_pay_the_brevity_penalty():
    scores = score(["a b c d"], ["a b c d e f"])
    assert scores.brevity_penalty == pytest.approx(math.exp(1 - 6 / 4))
    assert scores.bleu == pytest.approx(100 * scores.brevity_penalty)


def test_the_signatures_name_what_the_scores_depend_on():
    scores = score(["a b"], ["a b"])
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in scores.signature
    assert "nc:6|nw:0" in scores.chrf_signature
    assert scores.ter_signature is not None
    assert "tok:tercom" in scores.ter_signature


def test_case_and_punctuation_count():
    assert score(["The dog barks loudly today!"], ["the dog barks loudly today!"]).bleu < 100
    assert score(["the dog barks loudly today"], ["the dog barks loudly today!"]).bleu < 100


def test_several_references():
    hypotheses = ["the cat sat on the mat", "a dog barked"]
    first, second = ["the cat sat on a mat", "a dog was barking"], ["a cat sat on the mat", "one dog barked"]
    scores = score(hypotheses, [first, second])
    assert scores.bleu == BLEU().corpus_score(hypotheses, [first, second]).score
    assert scores.ter == TER().corpus_score(hypotheses, [first, second]).score
    assert "nrefs:2" in scores.signature


def test_ter_can_be_left_out():
    scores = score(["a"], ["a"], ter=False)
    assert (scores.ter, scores.ter_signature) == (None, None)


def test_a_single_reference_may_come_as_a_list_of_lists():
    assert score(["a b c d e"], [["a b c d f"]]) == score(["a b c d e"], ["a b c d f"])


def test_different_numbers_of_lines_are_refused_with_both_files_and_counts():
    with pytest.raises(DataError, match=r"out\.de has 2 lines and ref\.de has 1,003"):
        score(["a"] * 2, ["b"] * 1003, names=["out.de", "ref.de"])
    with pytest.raises(DataError, match="the hypotheses has 2 lines and reference 2 has 3"):
        score(["a"] * 2, [["b"] * 2, ["b"] * 3])


def test_nothing_to_score_is_refused():
    with pytest.raises(DataError, match=r"out\.de holds no line"):
        score([], [], names=["out.de", "ref.de"])
    with pytest.raises(DataError, match="the hypotheses has 0 lines and the reference has 1"):
        score([], ["a"])


def test_empty_translations_are_scored():
    scores = score(["", ""], ["a b c d", "e f g h"])
    assert (scores.bleu, scores.chrf, scores.ter) == (0, 0, 100)


@pytest.mark.parametrize(
    ("lines", "sign"),
    [
        (["ein Text", "ein @-@ Text"], "' @-@ '"),
        (["ein Te@@ xt"], "'@@ '"),
        (["it &apos;s me"], "'&apos;'"),
        (["\u2581ein \u2581Text"], "'\u2581'"),
        (["He came , saw and won .", CAT], "a space before its full stops"),
    ],
)
def test_text_that_looks_tokenised_brings_a_warning(lines, sign):
    assert sign in (tokenised_sign(lines) or "")
    with pytest.warns(UserWarning, match=r"out\.de looks tokenised"):
        score(lines, ["Etwas anderes."] * len(lines), names=["out.de", "ref.de"], ter=False)
    with pytest.warns(UserWarning, match="the reference looks tokenised"):
        score(["Etwas anderes."] * len(lines), lines, ter=False)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["", " "],
        ["Er kam, sah und siegte.", "Wirklich ?", "Oui ; non !", "Mail an a@b.de @ Berlin", "E-Mail - ja"],
        ["Only one . odd"],
        ["zwei drei vier", "eins fünf"],
    ],
)
def test_running_text_brings_none(lines):
    assert tokenised_sign(lines) is None


def test_the_library_adds_no_word_of_its_own(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score([CAT] * 200, [CAT] * 200, ter=False)
    assert capsys.readouterr() == ("", "")
