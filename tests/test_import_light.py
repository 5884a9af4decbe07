import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "sentencepiece", "sacrebleu", "safetensors", "jaxtyping"}
COMMANDS = (
    "demo",
    "train",
    "runs",
    "translate",
    "serve",
    "keys",
    "evaluate",
    "score",
    "rerank",
    "shortlist",
    "average",
    "doctor",
    "corpus",
)


def loaded_by(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter holds after ``program``."""
    report = "import sys; print('\\n'.join({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())


def test_importing_the_package_imports_nothing_heavy():
    loaded = loaded_by("import transduce; transduce.__version__; dir(transduce)")
    assert not loaded & (HEAVY | {"typer", "rich"})


def test_help_imports_nothing_heavy():
    calls = [[], ["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    program = f"from transduce.cli.main import main\nfor call in {calls}: main(call)"
    assert not loaded_by(program) & HEAVY


def test_looking_at_the_machine_module_does_not_load_torch():
    assert "torch" not in loaded_by("import transduce.machine; transduce.machine.tune_allocator()")


def test_a_model_is_loaded_without_the_compiler_of_torch(tmp_path):
    from tiny_translator import tiny_bundle
    from transduce.bundle import save_bundle

    bundle = tiny_bundle()
    save_bundle(tmp_path, bundle.model, bundle.model.config, bundle.tokenizer, {})
    program = (
        "import sys; from transduce import Translator\n"
        f"it = Translator.load({str(tmp_path)!r}, device='cpu', engine='torch')\n"
        "print(it.translate(['ab de'], beam=2) != [''], 'torch._dynamo' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "True False\n"


def test_the_public_names_resolve():
    import transduce

    for name in transduce.__all__:
        assert getattr(transduce, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'translator'"):
        _ = transduce.translator
