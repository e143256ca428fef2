//! Shared prefixes of byte strings.

use std::cmp::Ordering;

/// How many bytes `a` and `b` have in common at the start.
#[inline]
pub(crate) fn shared(a: &[u8], b: &[u8]) -> usize {
    let (a8, _) = a.as_chunks::<8>();
    let (b8, _) = b.as_chunks::<8>();
    let mut n = 0;
    for (x, y) in a8.iter().zip(b8) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return n + (differ.trailing_zeros() / 8) as usize;
        }
        n += 8;
    }
    let (a, b) = (a.get(n..).unwrap_or_default(), b.get(n..).unwrap_or_default());
    n + a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Compares two strings that are known to agree in their first `known` bytes; tells how many they share in all.
#[inline]
pub(crate) fn compare_from(a: &[u8], b: &[u8], known: usize) -> (Ordering, usize) {
    let n = known + shared(a.get(known..).unwrap_or_default(), b.get(known..).unwrap_or_default());
    (a.get(n).cmp(&b.get(n)), n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_obvious(common in prop::collection::vec(0u8..3, 0..40), a in prop::collection::vec(0u8..3, 0..20), b in prop::collection::vec(0u8..3, 0..20)) {
            let (a, b) = ([&common[..], &a].concat(), [&common[..], &b].concat());
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(shared(&a, &b), expected);
            prop_assert_eq!(compare_from(&a, &b, common.len()), (a.cmp(&b), expected));
        }
    }
}
