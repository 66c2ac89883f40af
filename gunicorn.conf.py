"""How gunicorn serves the site, wherever it is started from; the environment overrides."""

import os

wsgi_app = "planner.wsgi"
# Code and catalog are loaded once and shared by the forked workers.
preload_app = True
bind = f"{os.environ.get('HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = int(os.environ.get("WEB_THREADS", "4"))
worker_class = "planner.web_worker.PatientWorker"
# Nobody drives a running server by its control socket, and two servers of one user would fight over it.
control_socket_disable = True
# The heartbeat file must not wait for a slow disk.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None
graceful_timeout = 4
# A question's whole address, with the model's config in it; the server takes none longer.
limit_request_line = 8190
errorlog = "-"
logger_class = "planner.access_log.AccessLog"
accesslog = "-" if os.environ.get("ACCESS_LOG") else None
