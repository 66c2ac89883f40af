"""The pure engine: values in, values out; stdlib and numpy only."""
