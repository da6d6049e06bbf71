"""Sites in, pages out. The modules stand alone: whoever reads one markdown file need not load all parsers."""
