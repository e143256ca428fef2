//! What Java computes and Hadoop puts into files or file names: hash codes and the order of a hash map.

/// `hashCode` of `Text`, `UTF8` and `BytesWritable`: starts at 1 and takes bytes as signed.
pub fn hash_bytes(bytes: &[u8]) -> i32 {
    bytes.iter().fold(1i32, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b.cast_signed())))
}

/// `String.hashCode`: starts at 0 and takes UTF-16 units.
pub fn hash_string(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Size of a `HashMap`'s table unless it is told another.
pub const DEFAULT_CAPACITY: usize = 16;

/// Places of a `HashMap`'s table that began with `capacity` of them, once it has had `len` keys.
pub fn hash_map_capacity(len: usize, capacity: usize) -> usize {
    let mut size = capacity;
    while len * 4 > size * 3 {
        size *= 2;
    }
    size
}

/// Indexes of `hashes` in the order in which a `java.util.HashMap` iterates keys with these hash codes, inserted in
/// this order and all different, if its table began with `capacity` places, a power of two.
pub fn hash_map_order(hashes: &[i32], capacity: usize) -> Vec<usize> {
    let size = hash_map_capacity(hashes.len(), capacity);
    // The sort is stable: inside a bucket keys keep the order of insertion, also across doublings.
    let bucket = |h: i32| ((h ^ (h.cast_unsigned() >> 16).cast_signed()).cast_unsigned() as usize) & (size - 1);
    let mut order: Vec<(usize, usize)> = hashes.iter().enumerate().map(|(i, h)| (bucket(*h), i)).collect();
    order.sort_by_key(|(bucket, _)| *bucket);
    order.into_iter().map(|(_, i)| i).collect()
}
