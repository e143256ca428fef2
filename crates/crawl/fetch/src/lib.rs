//! One URL in, one capture out
