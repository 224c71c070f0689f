"""The async client. `remora._sync` is derived from it by tools/derive_sync.py."""
