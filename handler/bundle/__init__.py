"""A bundle: its format, and how it is opened and searched. No web, no language model."""
