#!/usr/bin/env python3
"""An S3 server on loopback that answers one request at a time: several threads of it once let two racing creates win."""
import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

app = DomainDispatcherApplication(create_backend_app)
run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=False)
