"""Transduce: the Transformer of *Attention Is All You Need*, from parallel text to a translator.

The names below are the public surface. They are resolved on first use (PEP 562), so that
``import transduce`` stays light and does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.data.cleaning.config import CleaningConfig as CleaningConfig
    from transduce.data.cleaning.scores import ByScore as ByScore
    from transduce.data.corpus.generator import write_corpus as write_corpus
    from transduce.data.crew import Crew as Crew
    from transduce.data.public import clean_corpus as clean_corpus
    from transduce.data.public import convert_corpus as convert_corpus
    from transduce.data.public import describe_corpus as describe_corpus
    from transduce.data.public import get_corpus as get_corpus
    from transduce.data.public import read_corpus as read_corpus
    from transduce.data.public import split_corpus as split_corpus
    from transduce.decoding.glossary import Glossary as Glossary
    from transduce.decoding.pair_scores import PairScorer as PairScorer
    from transduce.decoding.paragraphs import translate_paragraphs as translate_paragraphs
    from transduce.decoding.reranking import Weights as Weights
    from transduce.decoding.reranking import rerank as rerank
    from transduce.decoding.shortlist import make_shortlist as make_shortlist
    from transduce.decoding.synthetic import BackTranslation as BackTranslation
    from transduce.decoding.synthetic import Distillation as Distillation
    from transduce.decoding.synthetic import back_translate as back_translate
    from transduce.decoding.synthetic import distill as distill
    from transduce.decoding.terms import Term as Term
    from transduce.decoding.translator import Translator as Translator
    from transduce.documents.bulk import translate_folder as translate_folder
    from transduce.documents.translate import translate_document as translate_document
    from transduce.documents.translate import translate_file as translate_file
    from transduce.errors import TransduceError as TransduceError
    from transduce.evaluation.evaluate import evaluate as evaluate
    from transduce.evaluation.evaluate import evaluate_file as evaluate_file
    from transduce.evaluation.evaluate import evaluate_pairs as evaluate_pairs
    from transduce.interchange.exporting import export_model as export_model
    from transduce.interchange.importing import import_model as import_model
    from transduce.interchange.verification import verify as verify
    from transduce.model.config import ModelConfig as ModelConfig
    from transduce.model.transformer import Transformer as Transformer
    from transduce.serving.config import ServingConfig as ServingConfig
    from transduce.serving.run import TranslationServer as TranslationServer
    from transduce.training.averaging import average_folders as average_folders
    from transduce.training.curves import draw_curves as draw_curves
    from transduce.training.curves import plot_curves as plot_curves
    from transduce.training.history import find_runs as find_runs
    from transduce.training.history import read_run as read_run
    from transduce.training.run import train as train

__version__ = "0.1.0"

_HOMES = {
    "BackTranslation": "transduce.decoding.synthetic",
    "Distillation": "transduce.decoding.synthetic",
    "ByScore": "transduce.data.cleaning.scores",
    "CleaningConfig": "transduce.data.cleaning.config",
    "Crew": "transduce.data.crew",
    "Glossary": "transduce.decoding.glossary",
    "ModelConfig": "transduce.model.config",
    "PairScorer": "transduce.decoding.pair_scores",
    "ServingConfig": "transduce.serving.config",
    "Transformer": "transduce.model.transformer",
    "Term": "transduce.decoding.terms",
    "TransduceError": "transduce.errors",
    "TranslationServer": "transduce.serving.run",
    "Translator": "transduce.decoding.translator",
    "Weights": "transduce.decoding.reranking",
    "back_translate": "transduce.decoding.synthetic",
    "distill": "transduce.decoding.synthetic",
    "average_folders": "transduce.training.averaging",
    "clean_corpus": "transduce.data.public",
    "convert_corpus": "transduce.data.public",
    "describe_corpus": "transduce.data.public",
    "draw_curves": "transduce.training.curves",
    "evaluate": "transduce.evaluation.evaluate",
    "evaluate_file": "transduce.evaluation.evaluate",
    "evaluate_pairs": "transduce.evaluation.evaluate",
    "export_model": "transduce.interchange.exporting",
    "find_runs": "transduce.training.history",
    "get_corpus": "transduce.data.public",
    "import_model": "transduce.interchange.importing",
    "make_shortlist": "transduce.decoding.shortlist",
    "plot_curves": "transduce.training.curves",
    "read_corpus": "transduce.data.public",
    "read_run": "transduce.training.history",
    "rerank": "transduce.decoding.reranking",
    "split_corpus": "transduce.data.public",
    "train": "transduce.training.run",
    "translate_document": "transduce.documents.translate",
    "translate_file": "transduce.documents.translate",
    "translate_folder": "transduce.documents.bulk",
    "translate_paragraphs": "transduce.decoding.paragraphs",
    "verify": "transduce.interchange.verification",
    "write_corpus": "transduce.data.corpus.generator",
}

__all__ = [
    "BackTranslation",
    "ByScore",
    "CleaningConfig",
    "Crew",
    "Distillation",
    "Glossary",
    "ModelConfig",
    "PairScorer",
    "ServingConfig",
    "Term",
    "TransduceError",
    "Transformer",
    "TranslationServer",
    "Translator",
    "Weights",
    "__version__",
    "average_folders",
    "back_translate",
    "clean_corpus",
    "convert_corpus",
    "describe_corpus",
    "distill",
    "draw_curves",
    "evaluate",
    "evaluate_file",
    "evaluate_pairs",
    "export_model",
    "find_runs",
    "get_corpus",
    "import_model",
    "make_shortlist",
    "plot_curves",
    "read_corpus",
    "read_run",
    "rerank",
    "split_corpus",
    "train",
    "translate_document",
    "translate_file",
    "translate_folder",
    "translate_paragraphs",
    "verify",
    "write_corpus",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'transduce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
