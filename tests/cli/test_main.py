import errno
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest
import typer

import transduce
from transduce.cli import main as cli
from transduce.cli.main import main
from transduce.errors import BundleError, ConfigError, DataError, UsageError

COMMANDS = tuple(cli._COMMANDS)


@pytest.fixture
def failing(monkeypatch):
    """A way to have the command line meet an exception: returns exit code and stderr."""

    def fail(error: BaseException, capsys) -> tuple[int, str]:
        def run(_: list[str]) -> int:
            raise error

        monkeypatch.setattr(cli, "_run", run)
        code = main(["anything"])
        captured = capsys.readouterr()
        assert captured.out == ""
        return code, captured.err

    return fail


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"transduce {transduce.__version__}\n"


def test_help_lists_every_command_in_order_with_an_example(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    places = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    for name in COMMANDS:
        assert f" transduce {name}" in text
    assert "--install-completion" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_with_an_example(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: transduce {name}")
    assert f"transduce {name}" in text.split("Usage:")[1].split("\n", 1)[1]


def test_no_command_prints_the_help_on_stderr(capsys):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: transduce")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tranlate"], "no such command 'tranlate'"),
        (["--nonsense"], "no such option: --nonsense"),
        (["doctor", "--nonsense"], "no such option: --nonsense (see transduce doctor --help)"),
        (["doctor", "surplus"], "surplus"),
        (["corpus"], "missing command (see transduce corpus --help)"),
        (["score", "model", "--source", "a"], "missing option '--target'"),
        (["evaluate", "model", "--beam", "many"], "--beam"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_2(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("transduce: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert "--help)" in captured.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(DataError("a.txt:3: bad"), 1), (BundleError("b"), 1), (UsageError("u"), 2), (ConfigError("c"), 2)],
)
def test_an_error_of_ours_is_one_line_and_its_exit_code(error, code, failing, capsys):
    assert failing(error, capsys) == (code, f"transduce: error: {error}\n")


def test_an_error_of_the_system_names_file_and_reason(failing, capsys):
    error = OSError(errno.ENOSPC, "No space left on device", "out.txt")
    assert failing(error, capsys) == (1, "transduce: error: out.txt: No space left on device\n")


def test_a_full_memory_says_what_to_do(failing, capsys):
    code, text = failing(MemoryError(), capsys)
    assert code == 1
    assert "out of memory" in text
    assert text.count("\n") == 1


def test_an_unexpected_error_is_one_line_without_a_traceback(failing, capsys, monkeypatch):
    monkeypatch.delenv("TRANSDUCE_DEBUG", raising=False)
    code, text = failing(KeyError("a\nb"), capsys)
    assert code == 1
    assert text.startswith("transduce: error: internal error: KeyError: ")
    assert "TRANSDUCE_DEBUG=1" in text
    assert text.count("\n") == 1


def test_the_traceback_can_be_had(failing, capsys, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DEBUG", "1")
    _, text = failing(ValueError("odd"), capsys)
    assert "Traceback (most recent call last)" in text
    assert text.splitlines()[-1].startswith("transduce: error: internal error: ValueError: odd;")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_an_interrupt_is_one_line(error, failing, capsys):
    assert failing(error, capsys) == (130, "transduce: interrupted\n")


def test_warnings_are_one_line(capsys, monkeypatch):
    def run(_: list[str]) -> int:
        print(warnings.formatwarning("mind\nthe gap", UserWarning, "file.py", 3), end="", file=sys.stderr)
        return 0

    monkeypatch.setattr(cli, "_run", run)
    before = warnings.formatwarning
    assert main([]) == 0
    assert capsys.readouterr().err == "transduce: warning: mind the gap\n"
    assert warnings.formatwarning is before


def test_a_reader_that_leaves_early_is_no_error():
    program = "import sys; from transduce.cli.main import main; sys.exit(main(['--help']))"
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run(
            [sys.executable, "-c", program], stdout=write, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (141, b"")


def test_the_module_can_be_run():
    run = subprocess.run(
        [sys.executable, "-m", "transduce", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"transduce {transduce.__version__}\n"


def test_sigterm_leaves_no_temporary_file(tmp_path):
    words = ["-m", "transduce", "corpus", "generate", "--pairs", "100000000", "--output", str(tmp_path)]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not list(tmp_path.glob(".*.tmp")) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=60)[1]
    if process.returncode == 1 and "MiB are free" in error:
        pytest.skip(f"no room for the corpus: {error}")
    assert (process.returncode, error) == (143, "transduce: terminated\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("closed", "code"), [("<&-", 1), (">&-", 2), ("2>&-", 1)])
def test_closed_standard_streams(closed, code, tmp_path):
    command = f"{sys.executable} -m transduce translate {tmp_path} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.stderr.count("\n") == (0 if closed == "2>&-" else 1)
