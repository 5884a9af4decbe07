"""The models of a server: loaded, found by languages, and loaded again when their folders change."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transduce.bundle import CONFIG, TOKENIZER, TRAINING, WEIGHTS
from transduce.decoding.translator import Translator
from transduce.serving.pairs import Pair, Spec, checked, find_language, trained_pairs, way
from transduce.serving.refusals import Refused

Mark = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model as it was at one time: a request that has begun with it ends with it."""

    name: str
    translator: Translator
    pairs: Mapping[Pair, str]
    """Each with the language that the translator is asked for; empty where it knows only one."""
    at: float


@dataclass
class Served:
    """A folder that is served; ``problem`` says why its newest state is not what is served."""

    spec: Spec
    current: Loaded
    mark: Mark
    problem: str | None = None
    reloads: int = field(default=0)


@dataclass(frozen=True)
class Leg:
    """One model on the way from a source to a target."""

    pair: Pair
    model: Loaded

    @property
    def to(self) -> str:
        """The language to ask the model for."""
        return self.model.pairs[self.pair]


class Models:
    """All folders that are served, in the order in which they were named."""

    def __init__(self, specs: Sequence[Spec], load: Callable[[Path], Translator]) -> None:
        self._translator = load
        self.served = [self._first(spec) for spec in specs]

    def _first(self, spec: Spec) -> Served:
        mark = mark_of(spec.folder)
        return Served(spec, self._load(spec), mark)

    def _load(self, spec: Spec) -> Loaded:
        translator = self._translator(spec.folder)
        known = translator.languages
        pairs = checked(spec.pairs or trained_pairs(translator.bundle.training, known), spec.folder)
        asked = {pair: find_language(pair.target, known) or pair.target if known else "" for pair in pairs}
        return Loaded(spec.folder.resolve().name, translator, asked, time.time())

    @property
    def pairs(self) -> list[tuple[Pair, Loaded]]:
        """Every pair that a model translates without another one's help."""
        return [(pair, served.current) for served in self.served for pair in served.current.pairs]

    @property
    def languages(self) -> list[str]:
        """The codes of all languages, those of sources first."""
        pairs = [pair for pair, _ in self.pairs]
        return list(dict.fromkeys([*(pair.source for pair in pairs), *(pair.target for pair in pairs)]))

    def sources(self) -> list[str]:
        """The codes of the languages that can be translated from."""
        return list(dict.fromkeys(pair.source for pair, _ in self.pairs))

    def targets(self, source: str) -> list[str]:
        """The codes of the languages that ``source`` can be translated into, by one model or two."""
        legs = self.pairs
        return [code for code in self.languages if code != source and way(legs, source, code)]

    def legs(self, source: str, target: str) -> list[Leg]:
        """The models to pass through; raises `Refused` where a language or the pair is not served.

        From a language into itself there is nothing to pass through.
        """
        known = self.languages
        found = [find_language(code, known) for code in (source, target)]
        for code, one in zip((source, target), found, strict=True):
            if one is None:
                raise Refused(400, f"{code[:40]} is not supported; this server knows {', '.join(known)}")
        begin, end = (one or "" for one in found)
        if begin == end:
            return []
        passed = way(self.pairs, begin, end)
        if not passed:
            there = ", ".join(self.targets(begin)) or "nothing"
            raise Refused(400, f"{end} is not available as a target from {begin}, which goes into {there}")
        return [Leg(pair, model) for pair, model in passed]

    def look(self) -> list[tuple[Served, bool]]:
        """The folders that have changed since the last look, and whether their new state is served now.

        A folder that is gone or damaged keeps its old state serving, and its ``problem`` says why.
        """
        changed = []
        for served in self.served:
            mark = mark_of(served.spec.folder)
            if mark != served.mark:
                served.mark = mark
                changed.append((served, self._again(served)))
        return changed

    def _again(self, served: Served) -> bool:
        try:
            loaded = self._load(served.spec)
        except Exception as error:  # whatever is wrong with the new state: the old one serves
            served.problem = " ".join(str(error).split())
            return False
        served.current, served.problem = loaded, None
        served.reloads += 1
        return True


def mark_of(folder: Path) -> Mark:
    """What tells one state of a model folder from another; empty where it is not there."""
    found = []
    for name in (CONFIG, WEIGHTS, TOKENIZER, TRAINING):
        try:
            status = os.stat(folder / name)
        except OSError:
            continue
        found.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


class Watch:
    """A thread that looks at the folders every so many seconds and tells what has changed."""

    def __init__(self, models: Models, seconds: float, tell: Callable[[Served, bool], None]) -> None:
        self._models, self._seconds, self._tell = models, seconds, tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Nothing; the thread runs if there are seconds to wait."""
        if self._seconds:
            self._thread.start()

    def stop(self) -> None:
        """Nothing; the thread ends when it has loaded what it is loading."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            for served, is_new in self._models.look():
                self._tell(served, is_new)
