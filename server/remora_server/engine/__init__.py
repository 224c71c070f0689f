"""The engine's functions as the domain asks for them. It uses the Rust module `_native` and knows nothing of SQL."""
