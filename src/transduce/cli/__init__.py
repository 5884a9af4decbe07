"""The commands: each parses its arguments and calls one function below."""
