from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def own_the_traces_of_runs(apps: Any, schema_editor: Any) -> None:
    """Traces that were kept without an owner: each is that of the first run that serves it."""
    run_model, trace_model = apps.get_model("planner", "Run"), apps.get_model("planner", "StoredTrace")
    runs = run_model.objects.order_by("created_at", "pk").values_list("owner_id", "params__trace", "params__regions")
    for owner, trace, regions in runs.iterator():
        own = regions if isinstance(regions, list) else ()
        for name in (trace, *(region.get("trace") for region in own)):
            if isinstance(name, str) and len(name) <= 32:
                trace_model.objects.get_or_create(name=name, defaults={"owner_id": owner})


class Migration(migrations.Migration):
    dependencies = [
        ("planner", "0010_organization_tier"),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredTrace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(editable=False, max_length=32, unique=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.RunPython(own_the_traces_of_runs, migrations.RunPython.noop, elidable=True),
    ]
