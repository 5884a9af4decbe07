"""The embedded English-German corpus: a small grammar of our own."""
