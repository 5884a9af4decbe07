"""Names of languages, in files and in settings: which of them mean the same.

``de`` means ``de-DE`` and ``de_AT`` as well; ``deu``, ``ger`` and the ``deu_Latn`` of FLORES are German too.
"""

from __future__ import annotations

import functools
import re

# ISO 639: each code of two letters, and those of three letters that mean the same.
_CODES = (
    "aa aar, ab abk, ae ave, af afr, ak aka, am amh, an arg, ar ara, as asm, av ava, ay aym, az aze, ba "
    "bak, be bel, bg bul, bi bis, bm bam, bn ben, bo bod tib, br bre, bs bos, ca cat, ce che, ch cha, co "
    "cos, cr cre, cs ces cze, cu chu, cv chv, cy cym wel, da dan, de deu ger, dv div, dz dzo, ee ewe, el "
    "ell gre, en eng, eo epo, es spa, et est, eu eus baq, fa fas per, ff ful, fi fin, fj fij, fo fao, fr "
    "fra fre, fy fry, ga gle, gd gla, gl glg, gn grn, gu guj, gv glv, ha hau, he heb, hi hin, ho hmo, hr "
    "hrv, ht hat, hu hun, hy hye arm, hz her, ia ina, id ind, ie ile, ig ibo, ii iii, ik ipk, io ido, is "
    "isl ice, it ita, iu iku, ja jpn, jv jav, ka kat geo, kg kon, ki kik, kj kua, kk kaz, kl kal, km khm, "
    "kn kan, ko kor, kr kau, ks kas, ku kur, kv kom, kw cor, ky kir, la lat, lb ltz, lg lug, li lim, ln "
    "lin, lo lao, lt lit, lu lub, lv lav, mg mlg, mh mah, mi mri mao, mk mkd mac, ml mal, mn mon, mr mar, "
    "ms msa may, mt mlt, my mya bur, na nau, nb nob, nd nde, ne nep, ng ndo, nl nld dut, nn nno, no nor, "
    "nr nbl, nv nav, ny nya, oc oci, oj oji, om orm, or ori, os oss, pa pan, pi pli, pl pol, ps pus, pt "
    "por, qu que, rm roh, rn run, ro ron rum, ru rus, rw kin, sa san, sc srd, sd snd, se sme, sg sag, si "
    "sin, sk slk slo, sl slv, sm smo, sn sna, so som, sq sqi alb, sr srp, ss ssw, st sot, su sun, sv swe, "
    "sw swa, ta tam, te tel, tg tgk, th tha, ti tir, tk tuk, tl tgl, tn tsn, to ton, tr tur, ts tso, tt "
    "tat, tw twi, ty tah, ug uig, uk ukr, ur urd, uz uzb, ve ven, vi vie, vo vol, wa wln, wo wol, xh xho, "
    "yi yid, yo yor, za zha, zh zho chi, zu zul"
)
_SHORT = {long: codes[:2] for codes in _CODES.split(", ") for long in codes.split()[1:]}
_TWO = frozenset(_SHORT.values())
_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")


@functools.lru_cache(4_096)
def normal(name: str) -> str:
    """The name in lower case with hyphens, and a code of two letters where there is one: ``de-at``."""
    parts = name.strip().partition(".")[0].lower().replace("_", "-").replace("@", "-").split("-")
    return "-".join([_SHORT.get(parts[0], parts[0]), *parts[1:]])


def is_language(name: str) -> bool:
    """Whether a name begins with the code of a language, as ``de``, ``deu``, ``pt_BR`` and ``zh-Hant`` do."""
    return normal(name).partition("-")[0] in _TWO and all(
        part.isalnum() and len(part) <= 8 for part in normal(name).split("-")
    )


def is_code(name: str) -> bool:
    """Whether a name may be the code of a language: three letters, or two of ISO 639, and maybe subtags.

    More languages have three letters than `is_language` knows, which must not take a word for a language.
    """
    code = normal(name)
    return bool(_CODE.fullmatch(code)) and (len(code.partition("-")[0]) == 3 or is_language(code))


def agreement(name: str, wanted: str) -> int:
    """How well a language in a file is the one that is wanted, by its name.

    3: it is; 2: it is a variety of it; 1: it may be, as it says less or nothing; 0: it is another language.
    """
    name, wanted = normal(name), normal(wanted)
    if name == wanted:
        return 3
    if name.startswith(f"{wanted}-"):
        return 2
    return int(not name or wanted.startswith(f"{name}-"))
