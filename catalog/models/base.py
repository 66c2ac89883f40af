"""What every fact carries: where it was read, when, and whether the files still hold it."""

from __future__ import annotations

from django.db import models


class DatePrecision(models.TextChoices):
    """How exactly a source states its date; the stored date is the oldest it can mean."""

    DAY = "day", "the day"
    MONTH = "month", "a month"
    HALF_YEAR = "half_year", "a half-year"
    YEAR = "year", "a year"
    RANGE = "range", "a range"
    UPPER_BOUND = "upper_bound", "no later than this day"


class Fact(models.Model):
    """A row of a data file."""

    source = models.TextField()
    as_of = models.DateField("as of")
    retired = models.BooleanField(default=False, help_text="No longer in the data files.")

    class Meta:
        abstract = True
