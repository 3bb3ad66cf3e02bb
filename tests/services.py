"""Runs a command with new PostgreSQL, Redis and S3 servers: ``python -m tests.services pytest …``.

The command gets their addresses in ``TEST_DATABASE_URL``, ``TEST_BROKER_URL`` and ``TEST_STORAGE_URL``. The database's
URL is for a superuser and a maintenance database.
"""

import os
import signal
import subprocess
import sys

from support.servers import S3, Missing, Postgres, Redis


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end too
    try:
        with Postgres() as postgres, Redis() as redis, S3() as s3:
            urls = {
                "TEST_DATABASE_URL": postgres.url,
                "TEST_BROKER_URL": redis.url(),
                "TEST_STORAGE_URL": s3.url,
            }
            return subprocess.run(command, env=os.environ | urls | s3.credentials, check=False).returncode
    except Missing as error:
        sys.exit(str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
