//! WARC and ARC reading, WARC 1.1 writing, CDXJ
