"""Documents of a quote: PDF, CSV, XLSX and JSON from one frozen snapshot.

Pure, like the engine: a snapshot goes in, bytes come out, and the same snapshot gives the same bytes. Nothing here
asks a database, a clock or the network.
"""
