//! Orders of the web database.

use super::{Link, Page};
use crate::types::whole;
use trawl_hadoop::order::Order;

/// Pages by (MD5, URL).
pub fn page_order_by_md5() -> Order {
    Order::Made(|key, out| {
        let page = whole(key, Page::decode)?;
        out.extend(page.md5);
        out.extend(page.url.as_bytes());
        Ok(())
    })
}

/// Links by (URL, page they are on).
pub fn link_order_by_url() -> Order {
    Order::Made(|key, out| {
        let link = whole(key, Link::decode)?;
        terminated(link.url.as_bytes(), out);
        out.extend(link.from_id);
        Ok(())
    })
}

/// Links by (page they are on, URL).
pub fn link_order_by_md5() -> Order {
    Order::Made(|key, out| {
        let link = whole(key, Link::decode)?;
        out.extend(link.from_id);
        out.extend(link.url.as_bytes());
        Ok(())
    })
}

/// Bytes with an end that sorts below every byte.
fn terminated(bytes: &[u8], out: &mut Vec<u8>) {
    for b in bytes {
        match b {
            0 => out.extend([0, 1]),
            b => out.push(*b),
        }
    }
    out.extend([0, 0]);
}

/// The order of a MapFile of the web database, by the name of its directory; `None` where the class of its keys says it.
pub fn webdb_order(name: &str) -> Option<Order> {
    match name {
        "pagesByMD5" => Some(page_order_by_md5()),
        "linksByURL" => Some(link_order_by_url()),
        "linksByMD5" => Some(link_order_by_md5()),
        _ => None,
    }
}
