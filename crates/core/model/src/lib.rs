//! Capture, UrlRecord, Digest, Place, and the doors between containers
