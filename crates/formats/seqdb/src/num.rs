//! Lengths and offsets of files as indexes of this machine, and as variables of a superblock.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("offsets in files are used as indexes into memory, which needs 64 bits");

/// A length or an offset within memory.
#[inline]
pub(crate) const fn index(n: u64) -> usize {
    n as usize
}

/// A length or an offset as superblocks store it. No file is 2^63 bytes long: code that adds bytes to one checks that.
#[inline]
pub(crate) const fn signed(n: u64) -> i64 {
    n.cast_signed()
}
