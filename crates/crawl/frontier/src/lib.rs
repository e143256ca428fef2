//! What to fetch next, when, and how politely
