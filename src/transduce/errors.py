"""The exceptions that users meet; each carries the exit code of the command line."""


class TransduceError(Exception):
    """Anything that the user can mend: one line that names the value and the way out."""

    exit_code = 1


class UsageError(TransduceError):
    """A command or function was called with arguments that do not go together."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown, has the wrong type, or holds a value that makes no sense."""


class DataError(TransduceError):
    """A file holds something that cannot be used: the message names file and line."""


class BundleError(TransduceError):
    """A model folder is incomplete, damaged, or its parts do not belong together."""


class TrainingError(TransduceError):
    """A training run cannot go on: the message says what is kept and how to continue."""
