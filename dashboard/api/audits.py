"""Audits of compactions as the API returns them: what was retained, by parts, and what was lost."""

from decimal import Decimal

from ninja import Field, Schema

RETAINED = (
    "Share of what a continuing agent needs, weighted by importance, that is retained after the "
    "compaction: an estimate in percent. 100: nothing is missing. Null: there was nothing to judge, or no audit. "
    "Compare it only between summaries made the same way: one that quotes the conversation (without a model) has "
    "about 10 points more than one that a model wrote with the same facts."
)
LOST_COUNT = "Total number; `lost` contains at most 200 of them."


class RetainedPartOut(Schema):
    part: str = Field(
        description="`requirements`, `decisions`, `progress`, `background`, `errors` or `references`; stored audits of "
        "earlier versions have parts of other names.",
        examples=["requirements"],
    )
    weight: int = Field(description="Weight of the part, out of 100; parts without items are left out.")
    found: int = Field(description="Number of its items retained.")
    present: int = Field(description="Number of its items before the compaction.")
    retained_percent: Decimal = Field(description="Share of its items retained, by weight.")


class LostOut(Schema):
    part: str
    text: str
    entry: str = Field(description="The entry of the transcript that it comes from; empty where it has none.")
    weight: float | None = Field(description="Weight within the audit; null in audits of version 1.")


class AuditOut(Schema):
    version: int = Field(description="Version of the rules. Percentages of different versions are not comparable.")
    parts: list[RetainedPartOut]
    lost_count: int = Field(description=LOST_COUNT)
    lost: list[LostOut] = Field(description="Most important first; empty without content access.")
