"""A message about an unknown column names the columns to choose from."""

from app.inference.core.facts import suggest_columns


def test_a_few_columns_are_named_in_declared_order() -> None:
    assert suggest_columns("aeg", ["sex", "age", "hours"]) == "Name a declared column: sex, age, hours."


def test_close_names_come_first_if_not_all_fit() -> None:
    names = [f"column_{number}" for number in range(50)] + ["blood_pressure"]
    message = suggest_columns("blod_pressure", names)
    assert message.startswith("Name a declared column: blood_pressure, column_0, column_1,")
    assert message.endswith("column_18, and 31 more.")


def test_the_message_is_short_whatever_the_names_are() -> None:
    names = [f"{number:02}" + "x" * 198 for number in range(30)]
    message = suggest_columns(None, names)
    assert len(message) < 500
    assert message.count("xxx,") == 2
    assert message.endswith("and 28 more.")


def test_a_table_without_such_a_column_is_said_to_have_none() -> None:
    assert suggest_columns("a", [], "declared categorical column") == (
        "This dataset has no declared categorical column; choose another model."
    )
