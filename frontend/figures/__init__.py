"""The one package that builds Plotly figures: plain dicts, valid for any renderer. Times are ms, money USD."""
