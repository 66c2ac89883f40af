"""A saved plan of an offline job costs what the job does, not a month of its cluster."""

from django.db import migrations


def cost_of_the_job(apps, schema_editor):
    versions = apps.get_model("planner", "ScenarioVersion")
    for version in versions.objects.exclude(question__offline_requests=None).iterator(chunk_size=100):
        job = version.plan["options"][0].get("job")
        if job:
            versions.objects.filter(pk=version.pk).update(usd=job["usd"])


class Migration(migrations.Migration):
    dependencies = [("planner", "0012_quote_links")]

    operations = [migrations.RunPython(cost_of_the_job, migrations.RunPython.noop)]
