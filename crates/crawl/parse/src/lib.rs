//! Pure functions over bytes: links, robots.txt, sitemaps, feeds
