"""One form of every name for sign-in, lock-out and uniqueness.

Earlier versions compared names less strictly: "straße" and "strasse", or on SQLite "Ä" and "ä", may be two accounts.
Both keep working. The older one has the key; the others get theirs with a number behind a space, which no name has, and
are found by their own spelling.
"""

import unicodedata
from typing import Any

from django.db import migrations, models


_FILLERS = dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0"))  # letters of Hangul that are not drawn


def normalize_name(name: str) -> str:
    """Return the form of a name as this version compares it; later versions may compare otherwise."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_FILLERS)
    return unicodedata.normalize("NFKC", folded).strip()


def fill_name_keys(apps: Any, schema_editor: Any) -> None:
    users = apps.get_model("dashboard", "User").objects
    taken: set[str] = set()
    for pk, username in list(users.order_by("pk").values_list("pk", "username")):
        key = normalize_name(username)
        if key in taken:
            key = f"{key} {pk}"
        taken.add(key)
        users.filter(pk=pk).update(name_key=key)


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0025_drop_receipts")]

    operations = [
        migrations.RemoveConstraint("user", "user_name_unique_any_case"),
        migrations.AddField("user", "name_key", models.CharField(max_length=330, null=True, editable=False)),
        migrations.RunPython(fill_name_keys, migrations.RunPython.noop, elidable=True),
        migrations.AlterField("user", "name_key", models.CharField(max_length=330, unique=True, editable=False)),
    ]
