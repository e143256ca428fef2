//! Index segments: dictionary, membership, postings, counts
