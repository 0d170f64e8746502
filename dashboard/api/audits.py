"""Audits of compactions as the API returns them: what was retained, by parts, and what was lost."""

from decimal import Decimal

from ninja import Field, Schema

RETAINED = (
    "The share of what a continuing agent needs, weighted by importance, that can still be found after the "
    "compaction: an estimate in percent. 100: nothing is missing. Null: there was nothing to judge, or no audit."
)
LOST_COUNT = "How many in all; `lost` holds at most 200 of them."


class RetainedPartOut(Schema):
    part: str = Field(
        description="`requirements`, `decisions`, `progress`, `background`, `errors` or `references`; stored audits of "
        "earlier versions have parts of other names.",
        examples=["requirements"],
    )
    weight: int = Field(description="How much the part counts, of 100; parts with nothing to find are left out.")
    found: int = Field(description="How many of its items can still be found.")
    present: int = Field(description="How many of its items were there before.")
    retained_percent: Decimal = Field(description="The share of its items that can still be found, by their weight.")


class LostOut(Schema):
    part: str
    text: str
    entry: str = Field(description="The entry of the transcript that it comes from; empty where it has none.")
    weight: float | None = Field(description="How much it counts within the audit; null in audits of version 1.")


class AuditOut(Schema):
    version: int = Field(description="The version of the rules. Percentages of different versions do not compare.")
    parts: list[RetainedPartOut]
    lost_count: int = Field(description=LOST_COUNT)
    lost: list[LostOut] = Field(description="The most important first; empty where content is not granted.")
