"""On recorded compactions the percentage follows what readers found: see bench/retained.py."""

import pytest

from bench.retained import (
    CREDITS,
    Compaction,
    FactList,
    Kinds,
    find_compactions,
    measure_damage,
    read_lists,
    remove_facts,
    score,
)
from tests.compaction.recorded import RECORDED_DATA

LISTS = read_lists()


@pytest.mark.parametrize("facts", LISTS, ids=lambda facts: facts.name)
def test_every_list_has_fifteen_facts_that_were_judged_in_the_clients_summary(facts: FactList) -> None:
    numbers = {str(fact["id"]) for fact in facts.facts}
    assert len(numbers) == 15
    assert numbers == set(facts.carried_by) == set(facts.verdicts["client"]) == set(facts.verdicts["extractive"])
    assert all(set(verdicts.values()) <= set(CREDITS) for verdicts in facts.verdicts.values())
    assert all(bool(facts.carried_by[number]) == (facts.verdicts["client"][number] != "no") for number in numbers)
    assert not set(facts.unrelated) & {line for lines in facts.carried_by.values() for line in lines}


@pytest.mark.parametrize(
    ("client", "extractive", "order"),
    [
        ((12.0, 80.0), (14.0, 95.0), "same"),
        ((14.0, 80.0), (12.0, 70.0), "same"),
        ((13.5, 79.3), (12.5, 100.0), "reversed"),
        ((13.5, 86.8), (13.5, 98.3), "tie"),
    ],
)
def test_two_kinds_are_in_the_order_of_their_facts_or_not(
    client: tuple[float, float], extractive: tuple[float, float], order: str
) -> None:
    assert Kinds("checking", client, extractive, excess=0).order == order


@pytest.fixture(params=LISTS, ids=lambda facts: facts.name)
def compaction(request: pytest.FixtureRequest) -> Compaction:
    found = next(find_compactions(RECORDED_DATA, [request.param]), None)
    if found is None:
        pytest.skip("the recorded sessions are not beside this checkout")
    return found


@pytest.mark.recorded_data
def test_the_percentage_falls_with_facts_and_keeps_still_without_unrelated_lines(compaction: Compaction) -> None:
    damage = measure_damage(compaction, orders=2)
    assert damage.ordered / damage.pairs > 0.75
    assert damage.drop > 15
    assert abs(damage.moved_by_unrelated) < 6
    assert abs(damage.moved_by_rewording) < 6


@pytest.mark.recorded_data
def test_without_any_fact_much_less_is_retained(compaction: Compaction) -> None:
    points = remove_facts(compaction, compaction.client.splitlines(), seed=1)
    assert score(compaction, compaction.client) == points[0][1] > points[-1][1] + 10
