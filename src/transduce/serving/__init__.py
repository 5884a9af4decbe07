"""A server of translations: the API of LibreTranslate, an API of its own, and what protects both."""
