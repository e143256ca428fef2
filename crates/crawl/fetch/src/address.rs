//! Which addresses belong to the public web.
//!
//! A crawler follows links that strangers wrote: without this guard a page could make it ask the operator's own
//! network for things and archive the answers. The check is made on the address that is connected to, so a name that
//! changes its answer between check and use gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `ip` is globally reachable unicast, by the IANA special-purpose registries.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => public_v4(v4),
        IpAddr::V6(v6) => public_v6(v6),
    }
}

fn public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)             // this network, private, loopback
            | (100, 64..=127, _)         // shared (carrier NAT)
            | (169, 254, _)              // link-local, cloud metadata
            | (172, 16..=31, _)          // private
            | (192, 0, 0 | 2)            // protocol assignments, documentation
            | (192, 88, 99)              // retired 6to4 relays
            | (192, 168, _)              // private
            | (198, 18 | 19, _)          // benchmarking
            | (198, 51, 100)             // documentation
            | (203, 0, 113)              // documentation
            | (224..=255, _, _) // multicast, reserved, broadcast
    )
}

fn public_v6(ip: Ipv6Addr) -> bool {
    if let Some(v4) = embedded_v4(ip) {
        return public_v4(v4);
    }
    let [a, b, ..] = ip.segments();
    // Only 2000::/3 is global unicast; inside it a few blocks are not for the web.
    (0x2000..=0x3fff).contains(&a)
        && !(a == 0x2001 && b < 0x0200)          // protocol assignments, Teredo, ORCHID
        && !(a == 0x2001 && b == 0x0db8)         // documentation
        && !(a == 0x3fff && b < 0x1000) // documentation
}

/// The IPv4 address that an IPv6 one stands for: mapped, NAT64, 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(v4(g, h)),
        (0x2002, ..) => Some(v4(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_and_the_rest() {
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "172.32.0.1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::7f00:1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
