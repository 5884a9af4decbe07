"""``transduce corpus generate``."""

import pytest

from transduce.cli import corpus
from transduce.cli.main import main

FILES = ["test.de", "test.en", "train.de", "train.en", "valid.de", "valid.en"]


def generate(folder, *more):
    return main(["corpus", "generate", "--output", str(folder), *more])


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_it_writes_six_files_and_says_how_to_go_on(tmp_path, capsys):
    folder = tmp_path / "new" / "corpus"
    assert generate(folder, "--pairs", "300", "--seed", "5", "--valid", "20", "--test", "10") == 0
    assert sorted(path.name for path in folder.iterdir()) == FILES
    counts = {name: len(lines(folder / name)) for name in FILES}
    assert counts == {
        "train.en": 300,
        "train.de": 300,
        "valid.en": 20,
        "valid.de": 20,
        "test.en": 10,
        "test.de": 10,
    }
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{folder}: 300 pairs" in said.err
    assert f"transduce train --source {folder}/train.en --target {folder}/train.de --valid-source" in said.err


def test_without_validation_the_next_command_does_not_name_it(tmp_path, capsys):
    assert generate(tmp_path, "--pairs", "5", "--valid", "0", "--test", "0") == 0
    assert "--valid-source" not in capsys.readouterr().err
    assert lines(tmp_path / "valid.en") == []


def test_the_seed_decides(tmp_path):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert generate(tmp_path / name, "--pairs", "50", "--valid", "5", "--test", "5", "--seed", seed) == 0
    contents = [[(tmp_path / folder / name).read_bytes() for name in FILES] for folder in "abc"]
    assert contents[0] == contents[1]
    assert all(one != other for one, other in zip(contents[0], contents[2], strict=True))


def test_it_replaces_files_only_when_told_to(tmp_path, capsys):
    (tmp_path / "valid.de").write_text("meins\n")
    small = ("--pairs", "5", "--valid", "1", "--test", "1")
    assert generate(tmp_path, *small) == 2
    said = capsys.readouterr().err
    assert said == (
        f"transduce: error: {tmp_path / 'valid.de'}: exists already; choose another --output, "
        "or replace it with --force\n"
    )
    assert (tmp_path / "valid.de").read_text() == "meins\n"
    assert generate(tmp_path, *small, "--force") == 0
    assert (tmp_path / "valid.de").read_text() != "meins\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "0"], "0 train pairs: ask for 1 or more"),
        (["--pairs", "3", "--valid", "-1"], "-1 valid pairs: ask for 0 or more"),
        (["--pairs", "3", "--test", "-1"], "-1 test pairs: ask for 0 or more"),
        (["--pairs", "many"], "--pairs"),
        ([], "--pairs"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_2(tmp_path, capsys, arguments, message):
    assert generate(tmp_path / "new", *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("transduce: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_without_a_terminal_a_line_now_and_then_tells_rate_and_time_left(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(corpus, "_SECONDS_BETWEEN_LINES", 0.0)
    assert generate(tmp_path, "--pairs", "1500", "--valid", "1", "--test", "1") == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "pairs/s" in line]
    assert told
    assert all(" of 1,502 pairs, " in line and line.endswith(" s left") for line in told)


def test_on_a_terminal_there_is_a_bar(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert generate(tmp_path, "--pairs", "100", "--valid", "1", "--test", "1") == 0
    assert "102/102" in capsys.readouterr().err
