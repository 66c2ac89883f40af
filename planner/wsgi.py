"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")
application = get_wsgi_application()

from planner.warm_up import warm_up  # noqa: E402  models can be imported from here on

warm_up()
