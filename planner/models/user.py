"""People who log in."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person. Takar's own from the first migration, so that it can grow."""
