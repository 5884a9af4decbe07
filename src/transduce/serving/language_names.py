"""What languages are called in English."""

from __future__ import annotations

from transduce.data.formats.languages import normal

_NAMES = (
    "af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, bs "
    "Bosnian, ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, "
    "es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, gl Galician, gu "
    "Gujarati, he Hebrew, hi Hindi, hr Croatian, hu Hungarian, hy Armenian, id Indonesian, is "
    "Icelandic, it Italian, ja Japanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ky "
    "Kyrgyz, la Latin, lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian, mk Macedonian, ml "
    "Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål, ne "
    "Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, pa Punjabi, pl Polish, ps Pashto, pt "
    "Portuguese, ro Romanian, ru Russian, si Sinhala, sk Slovak, sl Slovenian, so Somali, sq Albanian, "
    "sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, tk Turkmen, tl "
    "Tagalog, tr Turkish, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, yo Yoruba, zh Chinese, zu "
    "Zulu"
)
_NAMED = {entry[:2]: entry[3:] for entry in _NAMES.split(", ")}


def language_name(code: str) -> str:
    """The name of a language with its region or script: ``Portuguese (BR)``; the code where it is unknown."""
    base, _, rest = normal(code).partition("-")
    name = _NAMED.get(base)
    if name is None:
        return code
    return f"{name} ({rest.upper() if len(rest) == 2 else rest.title()})" if rest else name
