"""Formulas of regressions, such as ``income ~ age + C(sex)``, as lists of features.

The syntax is that of R and of Python's formula libraries: ``+``, ``-``, ``:``, ``*``, ``/``, ``**`` (or ``^``),
parentheses, ``0`` and ``1``. Interactions of columns, ``poly(…)`` and ``bs(…)`` become terms of the request.
Other terms are refused by name. Nothing here reads data.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Final, NoReturn

from corevault._arguments import describe
from corevault.errors import InvalidArgument, MissingColumn, WrongType
from corevault.terms import interaction, list_columns, polynomial, spline

if TYPE_CHECKING:
    from corevault.schema import Schema

Term = tuple[str, ...]
"""Factors in the order of their first use. The intercept has none."""
Terms = dict[frozenset[str], Term]
"""Terms without repetitions, in order. The order of factors does not matter."""
Feature = str | dict[str, Any]
"""The name of a column, or a term of the request."""
_INTERCEPT: Final[Term] = ()
_TOKEN: Final = re.compile(r"\s*(?:(?P<name>[^\W\d][\w.]*|`[^`]*`)|(?P<number>\d+)|(?P<sign>\*\*|[-+*/:^~|(),]))")
_SPACE: Final = re.compile(r"\s*\Z")
_CATEGORICAL: Final = re.compile(r"C\(\s*([^\W\d]\w*)\s*\)")
_COLUMN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MOST_TERMS, _MOST_STEPS, _LONGEST, _DEEPEST, _HIGHEST_POWER = 1000, 100_000, 10_000, 50, 20
_KINDS: Final = {
    "a spline": ("bs", "ns", "cr", "cc", "s", "te", "ti"),
    "a polynomial": ("poly",),
    "an offset": ("offset",),
}
_REMEDIES: Final = {
    "a spline": "; write bs(x, df=4) or bs(x, knots=[...]) of one column",
    "a polynomial": "; write poly(x, 3) of one column",
}
_MOST_FACTORS: Final = 4


@dataclass(frozen=True)
class Formula:
    """A formula as features: names of columns, and terms.

    ``categorical`` are the columns in ``C(…)``, the target among them if it was written so.
    """

    target: str
    features: tuple[str | Mapping[str, Any], ...]
    categorical: tuple[str, ...] = ()

    def check(self, schema: "Schema") -> None:
        """Raises ``MissingColumn`` or ``InvalidArgument`` if the formula does not fit the declared columns."""
        declared = {column.name: column for column in schema}
        for name in (self.target, *chain.from_iterable(map(list_columns, self.features))):
            if name not in declared:
                raise MissingColumn(f"The formula names {name!r}; the declared columns are {', '.join(declared)}.")
        for name in self.categorical:
            if declared[name].type not in {"categorical", "binary"}:
                raise InvalidArgument(
                    f"The formula has C({name}), but {name!r} is declared as {declared[name].type}. The declaration "
                    f"decides how a column is used: write {name}, or declare categories."
                )


def parse_formula(text: str) -> Formula:
    """The features and the target of a formula.

    >>> parse_formula("income ~ age + C(sex) - 0")
    Formula(target='income', features=('age', 'sex'), categorical=('sex',))

    Raises:
        WrongType: ``text`` is not text.
        InvalidArgument: it is no formula, or it has a term that the server does not take; the message names the term.
    """
    if not isinstance(text, str):
        raise WrongType(f"formula must be text such as 'income ~ age + sex'; {describe(text)}.")
    if len(text) > _LONGEST:
        raise InvalidArgument(f"The formula is longer than {_LONGEST} characters; pass features and target instead.")
    left, right = read_terms(text)
    target = _read_target(left)
    found = [(_read_feature(term), term) for term in right if term != _INTERCEPT]
    every = [feature for feature, _ in found]
    features = [feature for place, feature in enumerate(every) if feature not in every[:place]]
    coded = dict.fromkeys(name for _, term in found for name in _list_coded(term))
    if None in features:
        raise InvalidArgument(_refuse(left, found))
    if _INTERCEPT not in right:
        raise InvalidArgument("Each model has an intercept, so 0 or -1 cannot remove it from the formula.")
    if not features:
        raise InvalidArgument("The formula has no column after ~; name at least one, as in 'income ~ age'.")
    taken = tuple(feature for feature in features if feature is not None)
    if target in chain.from_iterable(map(list_columns, taken)):
        raise InvalidArgument(f"The formula has its target {target!r} after ~ too; remove it there.")
    return Formula(target, taken, tuple(coded if left == target else [target, *coded]))


def _list_coded(term: Term) -> Iterator[str]:
    """The columns that a term has as ``C(column)``."""
    for factor in term:
        column = _read_column(factor)
        if column is not None and column != factor:
            yield column


def _refuse(left: str, found: Sequence[tuple[Feature | None, Term]]) -> str:
    """The message about terms that the server does not take."""
    refused = [_describe_term(term) for feature, term in found if feature is None]
    kept = dict.fromkeys(":".join(term) for feature, term in found if feature is not None)
    hint = f" Without it, the formula is {left} ~ {' + '.join(kept)}." if kept and len(refused) == 1 else ""
    return f"The server does not take {' or '.join(refused)}.{hint}"


def read_terms(text: str) -> tuple[str, list[Term]]:
    """The target of a formula, and all of its terms. Raises ``InvalidArgument`` if it is no formula."""
    left, right = _Parser(text).parse()
    return left, [*right.values()]


def _read_target(left: str) -> str:
    target = _read_column(left)
    if target is None:
        raise InvalidArgument(
            f"The target {left} is not a column. Write the name of one column before ~, and no transformation."
        )
    return target


def _read_feature(term: Term) -> Feature | None:
    """The feature of a term; None if the server does not take it."""
    members = list[Feature | None]()
    for factor in term:
        member = _read_column(factor) or _read_call(factor)
        if member not in members:
            members.append(member)
    if len(members) == 1:
        return members[0]
    columns = [name for member in members if member is not None for name in list_columns(member)]
    if None in members or len(members) > _MOST_FACTORS or len(set(columns)) < len(members):
        return None
    return interaction(*(member for member in members if member is not None))


def _read_call(factor: str) -> Feature | None:
    """The term of ``poly(column, degree)`` or ``bs(column, df, knots)``; None for another call."""
    try:
        call = ast.parse(factor, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in _CALLS:
            return None
        column, *values = call.args
        accepted, defaults = _CALLS[call.func.id]
        given = dict(zip(accepted, map(ast.literal_eval, values), strict=False))
        given |= {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    if not isinstance(column, ast.Name) or not _COLUMN.fullmatch(column.id) or len(values) > len(accepted):
        return None
    if any(given.pop(name, default) != default for name, default in defaults.items()) or not given.keys() <= {
        *accepted
    }:
        return None
    return _make_call(call.func.id, column.id, given)


_CALLS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, object]]]] = {
    "poly": (("degree",), {}),
    "bs": (("df", "knots"), {"degree": 3, "include_intercept": False}),
}
"""Calls in formulas: the arguments after the column, and arguments that may have one value only."""


def _make_call(name: str, column: str, given: Mapping[str, Any]) -> Feature | None:
    if name == "poly":
        return polynomial(column, given["degree"]) if type(given.get("degree")) is int else None
    df, knots = given.get("df"), given.get("knots")
    is_list = isinstance(knots, list | tuple) and all(type(knot) in (int, float) for knot in knots)
    if not (df is None or type(df) is int) or not (knots is None or is_list):
        return None
    return None if df is None and knots is None else spline(column, df, knots=knots)


def _read_column(factor: str) -> str | None:
    """The column of a factor that is a name or ``C(name)``; None for another call."""
    if coded := _CATEGORICAL.fullmatch(factor):
        return coded[1]
    return factor if _COLUMN.fullmatch(factor) else None


def _describe_term(term: Term) -> str:
    text = ":".join(term)
    if len(term) > 1:
        return (
            f"the interaction {text}; write columns, poly(x, 3) or bs(x, df=4) as its members, {_MOST_FACTORS} at most"
        )
    name = text.partition("(")[0].rpartition(".")[2]
    if name == "C":
        return f"the coding {text}; write the column alone, whose first declared category is the reference"
    if "(" not in text:
        return f"the name {text!r}, because names consist of letters, digits and underscores"
    kind = next((kind for kind, names in _KINDS.items() if name in names), "a transformation")
    return f"{text}, {kind}{_REMEDIES.get(kind, '')}"


class _Parser:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str) -> None:
        self._text, self._place, self._depth, self._steps = text, 0, 0, 0
        self._word, self._kind = "", ""
        self._advance()

    def parse(self) -> tuple[str, Terms]:
        """The text of the target, and the terms."""
        if self._word == "~":
            self._fail("has no target before ~")
        start = self._start
        left = self._read_sum(Terms())
        if self._word != "~":
            self._fail("has no ~ between the target and the features, as in 'income ~ age + sex'")
        target = next(iter(left.values())) if len(left) == 1 else ()
        written = target[0] if len(target) == 1 else self._text[start : self._start].strip()
        self._advance()
        right = self._read_sum(_make_terms(_INTERCEPT))
        if self._word:
            self._refuse_sign()
        return written, right

    def _read_sum(self, terms: Terms) -> Terms:
        """Terms that are added to ``terms`` or removed from them."""
        sign = "+"
        if self._word in {"+", "-"}:
            sign = self._word
            self._advance()
        while True:
            self._apply(terms, sign, self._read_product())
            if self._word not in {"+", "-"}:
                return terms
            sign = self._word
            self._advance()

    def _apply(self, terms: Terms, sign: str, operand: Terms | bool) -> None:
        if isinstance(operand, bool):  # 1 or 0
            if self._depth:
                self._fail("has 0 or 1 within parentheses; write them outside, for the intercept")
            sign = "+" if operand == (sign == "+") else "-"
            operand = _make_terms(_INTERCEPT)
        for factors, term in operand.items():
            if sign == "+":
                terms.setdefault(factors, term)
            else:
                terms.pop(factors, None)
        self._collect(terms.values())

    def _read_product(self) -> Terms | bool:
        left = self._read_interaction()
        while self._word in {"*", "/"}:
            sign = self._word
            self._advance()
            first, second = self._need_terms(left), self._need_terms(self._read_interaction())
            if sign == "*":
                left = self._collect(chain(first.values(), second.values(), _cross(first, second)))
            else:
                outer = tuple(dict.fromkeys(chain.from_iterable(first.values())))
                left = self._collect(chain(first.values(), _cross(_make_terms(outer), second)))
        return left

    def _read_interaction(self) -> Terms | bool:
        left = self._read_power()
        while self._word == ":":
            self._advance()
            left = self._collect(_cross(self._need_terms(left), self._need_terms(self._read_power())))
        return left

    def _read_power(self) -> Terms | bool:
        base = self._read_atom()
        while self._word in {"**", "^"}:
            self._advance()
            if self._kind != "number" or not 1 <= int(self._word[:3]) <= _HIGHEST_POWER:
                self._fail(f"needs a whole number from 1 to {_HIGHEST_POWER} after **")
            terms = self._need_terms(base)
            base = terms
            for _ in range(int(self._word[:3]) - 1):
                base = self._collect(chain(base.values(), _cross(base, terms)))
            self._advance()
        return base

    def _read_atom(self) -> Terms | bool:
        word, kind = self._word, self._kind
        if kind == "name":
            return _make_terms((self._read_factor(),))
        if kind == "number":
            if word not in {"0", "1"}:
                self._fail(f"has the number {word[:20]}, which is no term")
            self._advance()
            return word == "1"
        if word == "(":
            return self._read_parentheses()
        return self._refuse_sign() if word else self._fail("ends too early; it needs a column after its last sign")

    def _read_parentheses(self) -> Terms:
        text, self._depth = self._text[self._start : self._find_end(self._start + 1)], self._depth + 1
        if "|" in text:
            raise InvalidArgument(f"The server does not take {text}, a group-level effect.")
        if self._depth > _DEEPEST:
            self._fail(f"has more than {_DEEPEST} parentheses inside each other")
        self._advance()
        terms = self._read_sum(Terms())
        if self._word != ")":
            self._fail("has a parenthesis that is not closed")
        self._depth -= 1
        self._advance()
        return terms

    def _read_factor(self) -> str:
        """A name, or a call with its arguments as one text."""
        name = self._word.strip("`")
        opening = re.compile(r"\s*\(").match(self._text, self._place)
        if opening is not None and not self._word.startswith("`"):
            end = self._find_end(opening.end())
            text = " ".join(self._text[self._start : end].split())
            self._place = end
            self._advance()
            return text
        self._advance()
        return name

    def _find_end(self, place: int) -> int:
        """The place after the parenthesis that closes the one before ``place``. Quoted text does not count."""
        depth, quote = 1, ""
        for index, sign in enumerate(self._text[place:], place):
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"":
                quote = sign
            elif sign in "([{":
                depth += 1
            elif sign in ")]}":
                depth -= 1
                if not depth:
                    return index + 1
        return self._fail("has a parenthesis that is not closed")

    def _need_terms(self, operand: Terms | bool) -> Terms:
        if isinstance(operand, bool):
            self._fail("multiplies a number; write 0 or 1 as a term, for the intercept")
        return operand

    def _collect(self, terms: Iterable[Term]) -> Terms:
        """The terms without repetitions. Their number is limited, so that no short formula takes long."""
        found = Terms()
        for term in terms:
            found.setdefault(frozenset(term), term)
            self._steps += 1
            if len(found) > _MOST_TERMS or self._steps > _MOST_STEPS:
                self._fail(f"has more than {_MOST_TERMS} terms")
        return found

    def _advance(self) -> None:
        """Reads the next token; the empty text is the end."""
        match = _TOKEN.match(self._text, self._place)
        if match is None or match.lastgroup is None:
            if not _SPACE.match(self._text, self._place):
                sign = self._text[self._place :].strip()[:1]
                self._fail("has '.' for all columns; name them" if sign == "." else _describe_sign(sign))
            self._start, self._word, self._kind = len(self._text), "", ""
            return
        self._kind, self._word = match.lastgroup, match[match.lastgroup]
        self._start, self._place = match.start(match.lastgroup), match.end()

    def _refuse_sign(self) -> NoReturn:
        self._fail(_describe_sign(self._word))

    def _fail(self, what: str) -> NoReturn:
        raise InvalidArgument(f"The formula {what}.")


def _describe_sign(sign: str) -> str:
    return f"has an unexpected {sign!r}; write it as in 'income ~ age * sex + C(region)'"


def _make_terms(term: Term) -> Terms:
    return {frozenset(term): term}


def _cross(first: Terms, second: Terms) -> Iterator[Term]:
    """The interactions of each term with each other one. A factor counts once."""
    for left, right in product(first.values(), second.values()):
        yield tuple(dict.fromkeys((*left, *right)))
