//! A deterministic synthetic web on loopback
