# One image for every process: web (the default command), worker and beat.
FROM python:3.11-slim AS packages
WORKDIR /build
COPY requirements.txt .
RUN python -m venv /opt/takar \
    && /opt/takar/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements.txt

FROM python:3.11-slim
ENV PATH=/opt/takar/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TAKAR_VAR_DIR=/var/lib/takar \
    HOST=0.0.0.0 \
    PORT=8000 \
    LOG_FORMAT=json
RUN useradd --system --uid 10001 --no-create-home --home-dir /var/lib/takar takar \
    && install --directory --owner takar --group takar /var/lib/takar /var/lib/takar/media
COPY --from=packages /opt/takar /opt/takar
WORKDIR /srv/takar
COPY . .
USER 10001
# The key of this one command is thrown away: the running site gets its own from the environment.
RUN SECRET_KEY=build python manage.py collectstatic --no-input --verbosity 0
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(r.Request(f\"http://127.0.0.1:{os.environ['PORT']}/health/\", headers={'Host': 'localhost'}), timeout=4)"]
CMD ["gunicorn"]
