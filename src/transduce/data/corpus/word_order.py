"""The parts of a clause in order: statements, questions, subordinate clauses, infinitives and commands."""

from __future__ import annotations

from transduce.data.corpus.clauses import NOTHING, Clause

Pair = tuple[str, str]


def _join(*parts: str) -> str:
    return " ".join([part for part in parts if part])


def english_verb(built: Clause) -> str:
    """The English verbs of a statement, with an adverb or the negation in their midst."""
    form = built.form
    if built.negated:
        if form.auxiliary == "can":
            return f"cannot {form.rest}"
        return _join(form.auxiliary, "not", built.middle, form.rest)
    if not built.middle:
        return form.plain
    if form.plain == form.auxiliary:  # "is often tired"
        return f"{form.plain} {built.middle}"
    if form.plain.startswith(form.auxiliary):
        return f"{form.auxiliary} {built.middle} {form.rest}"
    return f"{built.middle} {form.plain}"


def front(built: Clause, slot: str) -> None:
    """Moves the time or the place to the front of its clause; nothing where there is none to move."""
    moved: Pair = getattr(built, slot)
    if moved[0]:
        built.front = moved
        setattr(built, slot, NOTHING)


def statement(built: Clause) -> Pair:
    """A main clause: the subject first, or what was moved to the front; the German verb is always second."""
    form = built.form
    english, german = built.front
    first, third = (german, built.subject.german) if german else (built.subject.german, "")
    return (
        _join(english, built.subject.english, english_verb(built), _english_end(built)),
        _join(first, form.finite, third, _german_middle(built), form.right),
    )


def after_clause(built: Clause, english: str, german: str) -> Pair:
    """A main clause with a subordinate one in front of it, which takes the first place in German."""
    form = built.form
    return (
        _join(f"{english},", built.subject.english, english_verb(built), _english_end(built)),
        _join(f"{german},", form.finite, built.subject.german, _german_middle(built), form.right),
    )


def question(built: Clause, english: str = "", german: str = "") -> Pair:
    """A question: the verb before its subject, after a question word if one is given."""
    form = built.form
    middle = _join("not", built.middle) if built.negated else built.middle
    return (
        _join(english, form.auxiliary, built.subject.english, middle, form.rest, _english_end(built)),
        _join(german, form.finite, built.subject.german, _german_middle(built), form.right),
    )


def subordinate(built: Clause, english: str, german: str) -> Pair:
    """A clause after a conjunction, with the German verb at its end."""
    return (
        _join(english, built.subject.english, english_verb(built), _english_end(built)),
        _join(german, built.subject.german, _german_middle(built), built.form.final),
    )


def infinitive(built: Clause, german: str = "") -> Pair:
    """*to* with an infinitive and *zu* with one, after ``german`` (*um*) if it is given."""
    verb = built.verb
    assert verb is not None
    return (
        _join("to", verb.english, _english_end(built)),
        _join(german, _german_middle(built), verb.with_zu),
    )


def command(built: Clause) -> Pair:
    """A command to a friend."""
    verb = built.verb
    assert verb is not None
    finite, right = verb.command
    english = ("do not", verb.english) if built.negated else (verb.english,)
    return _join(*english, _english_end(built)), _join(finite, _german_middle(built), right)


def _english_end(built: Clause) -> str:
    return _join(built.complement, built.manner, built.place[0], built.time[0])


def _german_middle(built: Clause) -> str:
    return _join(built.reflexive, built.before, built.time[1], built.after, built.place[1], built.last)
