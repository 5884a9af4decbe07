"""A filter on scripts: text that is mostly in letters that its language does not use."""

from __future__ import annotations

import functools
import re

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.formats.languages import normal

Scripts = tuple[str, ...]

# The blocks of Unicode's scripts, by their ISO 15924 codes; Jpan and Kore are the mixtures that are written.
_HAN = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_KANA = "\u3031-\u3035\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
BLOCKS = {
    "Latn": "A-Za-z\u00aa\u00ba\u00c0-\u02af\u1d00-\u1d25\u1d2c-\u1d5c\u1d62-\u1dbf\u1e00-\u1eff"
    "\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "Cyrl": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Grek": "\u0370-\u03ff\u1f00-\u1fff",
    "Armn": "\u0530-\u058f\ufb13-\ufb17",
    "Hebr": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arab": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Deva": "\u0900-\u097f\ua8e0-\ua8ff",
    "Beng": "\u0980-\u09ff",
    "Guru": "\u0a00-\u0a7f",
    "Gujr": "\u0a80-\u0aff",
    "Orya": "\u0b00-\u0b7f",
    "Taml": "\u0b80-\u0bff",
    "Telu": "\u0c00-\u0c7f",
    "Knda": "\u0c80-\u0cff",
    "Mlym": "\u0d00-\u0d7f",
    "Sinh": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Laoo": "\u0e80-\u0eff",
    "Tibt": "\u0f00-\u0fff",
    "Mymr": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Geor": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Ethi": "\u1200-\u139f\u2d80-\u2ddf\uab01-\uab2f",
    "Khmr": "\u1780-\u17ff",
    "Mong": "\u1800-\u18af",
    "Hani": _HAN,
    "Jpan": _HAN + _KANA,
    "Kore": _HANGUL + _HAN,
}
_ALIASES = {"Hans": "Hani", "Hant": "Hani", "Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan"}
# In which scripts languages (ISO 639-1, or 639-3 where there is none) are written.
_LANGUAGES = {
    "Latn": "af br ca ceb cs cy da de en eo es et eu fi fil fo fr fy ga gd gl ha haw hr ht hu id ig is it jv "
    "la lb lt lv mg mi ms mt nb nl nn no nso ny oc pl pt qu rm ro rw sk sl sm sn so sq st su "
    "sv sw swh tl tn tr ts vi xh yo zu",
    "Latn Cyrl": "az bs sr tk tt uz",
    "Latn Arab Cyrl": "ku",
    "Cyrl": "be bg ce cv ky mk os ru sah tg uk",
    "Cyrl Latn": "kk",
    "Cyrl Mong": "mn",
    "Grek": "el",
    "Armn": "hy",
    "Hebr": "he yi iw",
    "Arab": "ar arb arz ckb fa pes prs ps ug ur",
    "Arab Deva": "ks sd",
    "Deva": "bho hi mai mr ne sa",
    "Beng": "as bn",
    "Guru Arab": "pa",
    "Gujr": "gu",
    "Orya": "or",
    "Taml": "ta",
    "Telu": "te",
    "Knda": "kn",
    "Mlym": "ml",
    "Sinh": "si",
    "Thai": "th",
    "Laoo": "lo",
    "Tibt": "bo dz",
    "Mymr": "my",
    "Geor": "ka",
    "Ethi": "am ti",
    "Khmr": "km",
    "Hani": "zh cmn yue wuu",
    "Jpan": "ja",
    "Kore": "ko",
}
_SCRIPTS = {name: scripts.split() for scripts, names in _LANGUAGES.items() for name in names.split()}
_LETTER = re.compile(r"[^\W\d_]")
FEWEST_LETTERS = 10
"""Texts with fewer letters may be a name or an abbreviation in any script."""


def scripts_of(language: str) -> Scripts:
    """The scripts in which a language is written, by its code or that of a variety of it; none if not known.

    A script that the code names goes before: ``sr-Latn``, ``zh_Hant_TW``.
    """
    name, *subtags = normal(language).split("-")
    for subtag in subtags:
        script = _ALIASES.get(subtag.title(), subtag.title())
        if len(subtag) == 4 and script in BLOCKS:
            return (script,)
    return tuple(_SCRIPTS.get(name, ()))


def script(source: str, target: str, scripts: tuple[Scripts, Scripts], config: CleaningConfig) -> str:
    """Why a pair with a side that has too few letters in the scripts of its language is dropped.

    A side whose scripts are not known is not looked at.
    """
    return _script("source", source, scripts[0], config) or _script("target", target, scripts[1], config)


def _script(side: str, text: str, scripts: Scripts, config: CleaningConfig) -> str:
    if not scripts or (text.isascii() and "Latn" in scripts):
        return ""
    rest = _pattern(scripts).sub("", text)
    right, wrong = len(text) - len(rest), len(_LETTER.findall(rest))
    if right + wrong < FEWEST_LETTERS or right >= config.script_share * (right + wrong):
        return ""
    return (
        f"{right / (right + wrong):.0%} of the letters in {side} are {' or '.join(scripts)}, "
        f"at least {config.script_share:.0%}"
    )


@functools.cache
def _pattern(scripts: Scripts) -> re.Pattern[str]:
    return re.compile(f"[{''.join(BLOCKS[script] for script in scripts)}]+")
