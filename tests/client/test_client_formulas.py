"""Formulas: columns, refusals that name the term, and agreement with the parser of another library."""

import re
from typing import Any

import patsy
import pytest
from corevault import (
    InvalidArgument,
    LinearRegression,
    LogisticRegression,
    MissingColumn,
    MultinomialLogistic,
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    Schema,
    StudentTRegression,
    WrongType,
    binary,
    categorical,
    integer,
)
from corevault.formula import Formula, parse_formula, read_terms
from corevault.terms import list_columns
from hypothesis import given
from hypothesis import strategies as st

FAMILIES = (
    LogisticRegression,
    ProbitRegression,
    LinearRegression,
    StudentTRegression,
    PoissonRegression,
    NegativeBinomialRegression,
    MultinomialLogistic,
)
SCHEMA = Schema(integer("age", 0, 99), integer("educ", 0, 20), categorical("job", ["a", "b"]), binary("had"))
NAMES = st.sampled_from(["a", "b", "c", "d_1"])
TARGET = "y"


def _combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(inner, st.sampled_from([" + ", "-", ":", " * ", "/"]), inner).map("".join)
    return st.one_of(inner, joined, joined.map("({})".format), inner.map("({})**2".format))


SUMS = st.recursive(NAMES, _combine, max_leaves=12)
"""Right sides of formulas, without numbers."""


def _try(text: str) -> Formula | str:
    """The formula, or the text of the client's error. Any other error passes."""
    try:
        return parse_formula(text)
    except InvalidArgument as error:
        return str(error)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_with_a_target_takes_a_formula(family: type[LogisticRegression]) -> None:
    model = family.formula("had ~ age + C(job)", prior_scale=2.5, schema=SCHEMA)
    assert type(model) is family
    assert model.to_json() == family(features=["age", "job"], target="had", prior_scale=2.5).to_json()


ACCEPTED: dict[str, tuple[str | dict[str, Any], ...]] = {
    "had ~ age:educ": ({"interaction": ["age", "educ"]},),
    "had ~ age * C(job)": ("age", "job", {"interaction": ["age", "job"]}),
    "had ~ educ + job:age + age:job": ("educ", {"interaction": ["job", "age"]}),
    "had ~ (age + educ + job)^2 - age:job - educ:job": ("age", "educ", "job", {"interaction": ["age", "educ"]}),
    "had ~ age / educ": ("age", {"interaction": ["age", "educ"]}),
    "had ~ bs(educ, 4):C(job)": ({"interaction": [{"spline": "educ", "df": 4}, "job"]},),
    "had ~ poly(age, 2) * job": (
        {"polynomial": "age", "degree": 2},
        "job",
        {"interaction": [{"polynomial": "age", "degree": 2}, "job"]},
    ),
    "had ~ bs(educ, df=4):bs(educ, df=4)": ({"spline": "educ", "df": 4},),
    "had ~ a:b:c:d": ({"interaction": ["a", "b", "c", "d"]},),
    "had ~ bs(age, df=4) + poly(educ, 2)": ({"spline": "age", "df": 4}, {"polynomial": "educ", "degree": 2}),
    "had ~ bs( age , 5 , knots = (30, 40.5) )": ({"spline": "age", "df": 5, "knots": [30.0, 40.5]},),
    "had ~ bs(age, knots=[-3, 40]) + bs(age, knots = [-3, 40.0])": ({"spline": "age", "knots": [-3.0, 40.0]},),
    "had ~ bs(age, df=4, degree=3, include_intercept=False)": ({"spline": "age", "df": 4},),
    "had ~ poly(age, degree=3) + age - age": ({"polynomial": "age", "degree": 3},),
    "had~age": ("age",),
    " had ~ age + educ + age ": ("age", "educ"),
    "had ~ (age + educ)": ("age", "educ"),
    "had ~ 1 + age": ("age",),
    "had ~ age - 0": ("age",),
    "had ~ 0 + age + 1": ("age",),
    "had ~ age * educ - age:educ": ("age", "educ"),
    "had ~ age * educ - educ:age": ("age", "educ"),
    "had ~ age:age + (educ)**3": ("age", "educ"),
    "had ~ + age - educ + job": ("age", "job"),
    "`had` ~ `age` + C( job )": ("age", "job"),
    "had ~ bs(age) + job - bs(age)": ("job",),
    "had ~\n  age\n  + job": ("age", "job"),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_formula_stands_for_its_columns_in_order(text: str) -> None:
    found = parse_formula(text)
    assert (found.target, found.features) == ("had", ACCEPTED[text])


REFUSED = {
    "had ~ age + bs(educ, 4):log(job)": "not take the interaction bs(educ, 4):log(job); write columns, poly(x, 3)",
    "had ~ age:bs(age, 4)": "not take the interaction age:bs(age, 4); write columns",
    "had ~ a:b:c:d:e + C(a)": "(x, df=4) as its members, 4 at most. Without it, the formula is had ~ C(a).",
    "had ~ age + bs(educ)": "bs(educ), a spline; write bs(x, df=4) or bs(x, knots=[...]) of one column. Without it",
    "had ~ bs(age, df=4, degree=2)": "bs(age, df=4, degree=2), a spline",
    "had ~ bs(age, df=4.5)": "bs(age, df=4.5), a spline",
    "had ~ bs(age, knots=k)": "bs(age, knots=k), a spline",
    "had ~ bs(age, knots=['x'])": "bs(age, knots=['x']), a spline",
    "had ~ bs(log(age), df=4)": "bs(log(age), df=4), a spline",
    "had ~ bs(age, 4, [1], 7)": "bs(age, 4, [1], 7), a spline",
    "had ~ ns(age, df=4)": "ns(age, df=4), a spline",
    "had ~ poly(age)": "poly(age), a polynomial; write poly(x, 3) of one column.",
    "had ~ poly(age, educ, 2)": "poly(age, educ, 2), a polynomial",
    "had ~ poly(age, True)": "poly(age, True), a polynomial",
    "had ~ poly(age, 2, raw=True)": "poly(age, 2, raw=True), a polynomial",
    "had ~ np.log(age) + educ": "np.log(age), a transformation",
    "had ~ I(age**2) + log (educ)": "I(age**2), a transformation or log (educ), a transformation.",
    "had ~ age + offset(log(t))": "offset(log(t)), an offset",
    "had ~ f(')', \"(\", [1, (2)]) + age": "f(')', \"(\", [1, (2)]), a transformation",
    "had ~ C(job, Treatment('b'))": "the coding C(job, Treatment('b')); write the column alone",
    "had ~ age + (1 | job)": "(1 | job), a group-level effect",
    "had ~ age + (0 + age | job)": "(0 + age | job), a group-level effect",
    "had ~ a.b": "the name 'a.b', because names consist of letters, digits and underscores",
    "had ~ âge": "the name 'âge'",
    "had ~ `two words`": "the name 'two words'",
    "had ~ age - 1": "Each model has an intercept",
    "had ~ 0 + age": "Each model has an intercept",
    "had ~ age + (educ - 1)": "0 or 1 within parentheses",
    "had ~ 1": "no column after ~",
    "had ~ age - age": "no column after ~",
    "had ~ age + age:had": "its target 'had' after ~ too",
    "had ~ age + had": "its target 'had' after ~ too",
    "log(had) ~ age": "The target log(had) is not a column",
    "had + ill ~ age": "The target had + ill is not a column",
    "1 ~ age": "The target 1 is not a column",
    "had - had ~ age": "The target had - had is not a column",
    "~ age": "has no target before ~",
    "had": "has no ~ between the target and the features",
    "": "ends too early",
    "had ~ ": "ends too early",
    "had ~ age +": "ends too early; it needs a column after its last sign",
    "had = age": "an unexpected '='; write it as in 'income ~ age",
    "had ~ .": "has '.' for all columns; name them",
    "had ~ age ~ educ": "an unexpected '~'",
    "had ~ age | educ": "an unexpected '|'",
    "had ~ age, educ": "an unexpected ','",
    "had ~ age $ educ": "an unexpected '$'",
    "had ~ 'age'": 'an unexpected "\'"',
    "had ~ (age": "a parenthesis that is not closed",
    "had ~ age)": "an unexpected ')'",
    "had ~ log(age": "a parenthesis that is not closed",
    "had ~ (age educ)": "a parenthesis that is not closed",
    "had ~ age educ": "an unexpected 'educ'",
    "had ~ 2 + age": "the number 2, which is no term",
    "had ~ 1:age": "multiplies a number",
    "had ~ age ** educ": "a whole number from 1 to 20 after **",
    "had ~ age ** 99999999999999999999": "a whole number from 1 to 20 after **",
    "had ~ (a+b+c+d+e+f+g+h+i+j+k)**9": "more than 1000 terms",
    "had ~ " + ":".join(["(a+b+c+d+e+f+g+h+i)**9"] * 300): "more than 1000 terms",
    "had ~ " + "(" * 60 + "age" + ")" * 60: "more than 50 parentheses inside each other",
    "had ~ " + " + ".join(["age"] * 5000): "longer than 10000 characters",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_other_terms_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse_formula(text)
    assert REFUSED[text] in str(raised.value)
    assert str(raised.value).endswith(".")


def test_a_formula_is_text_and_states_features_and_target() -> None:
    with pytest.raises(WrongType, match="formula must be text"):
        LogisticRegression.formula(["age"])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="The formula states the features and target; leave it out"):
        LogisticRegression.formula("had ~ age", features=["educ"], target="ill")


def test_a_schema_shows_wrong_names_and_codings() -> None:
    with pytest.raises(MissingColumn, match="names 'agee'; the declared columns are age, educ, job, had"):
        LogisticRegression.formula("had ~ agee", schema=SCHEMA)
    with pytest.raises(MissingColumn, match="names 'agee'"):
        LogisticRegression.formula("had ~ age:agee", schema=SCHEMA)
    with pytest.raises(MissingColumn, match="names 'agee'"):
        LogisticRegression.formula("had ~ bs(agee, 4)", schema=SCHEMA)
    with pytest.raises(InvalidArgument, match=re.escape("C(age), but 'age' is declared as integer")):
        LogisticRegression.formula("had ~ C(age):job", schema=SCHEMA)
    with pytest.raises(MissingColumn, match="names 'hat'"):
        LogisticRegression.formula("hat ~ age", schema=SCHEMA)
    with pytest.raises(InvalidArgument, match=re.escape("C(educ), but 'educ' is declared as integer")):
        LogisticRegression.formula("had ~ C(educ)", schema=SCHEMA)
    assert MultinomialLogistic.formula("C(job) ~ age", schema=SCHEMA).target == "job"
    with pytest.raises(InvalidArgument, match=re.escape("C(age), but 'age' is declared as integer")):
        MultinomialLogistic.formula("C(age) ~ educ", schema=SCHEMA)


@given(SUMS)
def test_terms_agree_with_those_of_patsy(text: str) -> None:
    theirs = patsy.ModelDesc.from_formula(f"{TARGET} ~ {text}").rhs_termlist
    target, ours = read_terms(f"{TARGET} ~ {text}")
    assert target == TARGET
    assert {frozenset(term) for term in ours} == {
        frozenset(factor.name() for factor in term.factors) for term in theirs
    }
    assert len(ours) == len(theirs)


@given(SUMS)
def test_a_formula_of_columns_is_accepted_with_its_interactions(text: str) -> None:
    terms = [term for term in read_terms(f"{TARGET} ~ {text}")[1] if term]
    found = _try(f"{TARGET} ~ {text}")
    if isinstance(found, Formula):
        assert terms == [list_columns(feature) for feature in found.features]
    else:
        assert not terms


@given(st.text(alphabet="yab_1290~+-*/:^|(),.`'\" C[]$é\n", max_size=40) | st.text(max_size=20))
def test_every_text_is_a_formula_or_an_error_of_the_client(text: str) -> None:
    found = _try(text)
    if isinstance(found, str):
        assert found.endswith(".")
    else:
        names = [name for feature in found.features for name in list_columns(feature)]
        assert len({str(feature) for feature in found.features}) == len(found.features) > 0
        assert found.target not in names
        assert all(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) for name in (found.target, *names))


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), min_size=2, max_size=8, unique=True))
def test_any_columns_come_back_in_their_order(names: list[str]) -> None:
    target, *features = names
    assert parse_formula(f"{target} ~ {' + '.join(features)}") == Formula(target, tuple(features))
