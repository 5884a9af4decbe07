"""``transduce runs`` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from run_logs import START, end, report, validation, write_run
from transduce.cli.main import main
from transduce.cli.runs import describe
from transduce.training.folder import locked
from transduce.training.history import read_run


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, and one that was killed, in the current folder."""
    log = [START, report(40, 5.0), validation(40, 5.0, 3.5), report(80, 3.0), validation(80, 3.5, 30.75)]
    write_run(tmp_path / "first", *log, end(80, "80 updates are done", bleu=31.239))
    write_run(tmp_path / "below" / "second", START, report(1234, 7.0), validation(1234, 6.125), tail=b'{"ev')
    monkeypatch.chdir(tmp_path)
    return tmp_path


TABLE = """\
run           preset  state     last line      updates  epochs                 best  final BLEU  tokens/s       time
first         tiny    finished  1:00 h ago          80     2.0     BLEU 30.75 at 80       31.24       105   2:40 min
below/second  tiny    failed    21:32 min ago    1,234    30.9  loss 6.125 at 1,234                   105  41:08 min
"""  # noqa: E501


def test_the_table(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summaries = [read_run(name).summary() for name in ("first", "below/second")]
    assert describe(summaries, now=1161.0 + 3600) + "\n" == TABLE
    assert main(["runs"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "below/second: 1 damaged line of log.jsonl left out\n"
    head, *rows = captured.out.rstrip("\n").split("\n")
    assert head.split() == TABLE.partition("\n")[0].split()
    assert [row.split()[:3] for row in rows] == [  # the latest is the last
        ["first", "tiny", "finished"],
        ["below/second", "tiny", "failed"],
    ]


def test_names_and_ages_that_are_odd(tmp_path: Path) -> None:
    summary = read_run(write_run(tmp_path / "a\nb\udce9", START)).summary()
    row = describe([summary], now=1000.0 + 3 * 86_400).split("\n")[1]
    assert row.startswith(f"{tmp_path}/a?b?  tiny    failed  3 days ago")
    assert "  0 s ago  " in describe([summary], now=900.0)  # a clock that was set back


def test_states_that_need_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "größe", START, report(3, 4.0), end(3, "stopped by SIGINT"))
    bare = write_run(tmp_path / "翻訳")
    with locked(bare):
        assert main(["runs", str(folder), str(bare)]) == 0
    head, stopped, running = capsys.readouterr().out.rstrip("\n").split("\n")
    assert "  stopped by SIGINT  " in stopped
    assert running.split()[1:3] == ["?", "running"]
    place = head.index("preset")
    assert stopped[place:].startswith("tiny ")
    assert running[place - 2 :].startswith("?")  # two letters that are two columns wide


def test_one_json_object_a_run(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", ".", "below", "--json"]) == 0
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.split("\n") if line]
    assert [run["run"] for run in found] == ["first", "below/second"]  # the latest is the last
    first, second = found
    assert first == {
        "run": "first",
        "preset": "tiny",
        "state": "finished",
        "reason": "80 updates are done",
        "last_time": 1161.0,
        "step": 80,
        "epochs": 2.0,
        "best_bleu": 30.75,
        "best_bleu_step": 80,
        "best_loss": 3.5,
        "best_loss_step": 80,
        "final_bleu": 31.239,
        "target_tokens_per_second": 105.0,
        "seconds": 160.0,
        "starts": 1,
        "damaged_lines": 0,
    }
    assert (second["state"], second["best_bleu"], second["damaged_lines"]) == ("failed", None, 1)


def test_curves_and_plots(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "first", "below/second", "--curves", "--by", "seconds"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()  # no colour in a pipe, so that lines must be letters
    assert text.startswith(
        "loss per target token, without smoothing (lines: training, letters: validation)\n"
    )
    assert "\nBLEU of the validations\n" in text
    assert "41:08 min training time\n" in text
    assert text.endswith("\nA first\nB below/second\n")


@pytest.mark.parametrize("name", ["curves.png", "curves.svg"])
def test_a_plot_alone_is_said_on_stderr(
    two_runs: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["runs", "first", "--plot", name]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{name}: the curves of 1 run\n")
    assert Path(name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["empty"], 1, "empty: no training run (settings.json and log.jsonl), 3 levels deep"),
        (["none"], 2, "none: no such folder; name the folder of a run"),
        (["first", "--plot", "curves.pdf"], 2, "curves.pdf: a plot is written as PNG or SVG"),
        (["none", "--plot", "no/curves.png"], 2, "name a file in an existing folder"),
        (["first", "--by", "seconds"], 2, "--by seconds is for curves: add --curves or --plot FILE"),
        (["first", "--curves", "--by", "epochs"], 2, "choose updates, seconds or tokens"),
        (["first", "--json", "--curves"], 2, "leave out --curves and --plot"),
        (["bare", "--curves"], 1, "bare: nothing to draw yet"),
    ],
)
def test_wrong_calls_are_one_line(
    two_runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    Path("empty").mkdir()
    write_run(Path("bare"), START)
    before = sorted(Path().rglob("*"))
    assert main(["runs", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("transduce: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(Path().rglob("*")) == before


def test_a_folder_without_runs_beside_one_with_some_is_said(
    two_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    assert main(["runs", "empty", "first"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("empty: no training run")
    assert captured.out.count("\n") == 2


def test_listing_runs_loads_no_torch(two_runs: Path) -> None:
    program = (
        "import sys; from transduce.cli.main import main; "
        "main(['runs']); main(['runs', 'first', '--curves']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nFalse\n")
