//! Deflate streams that lie in memory whole, inflated in one call.

use std::ptr::NonNull;

/// An inflater of raw deflate streams (RFC 1951), two to three times as fast as one that streams. It calls libdeflate itself,
/// since the safe wrapper does not say how much of the input a stream took, and that alone proves where a stream ended.
#[derive(Debug)]
pub struct Inflater(NonNull<libdeflate_sys::libdeflate_decompressor>);

/// What a stream took and gave, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflated {
    /// Of the input; what comes after is not part of the stream.
    pub used: usize,
    /// Of the output.
    pub written: usize,
}

// Sound: the library's state has no tie to a thread, and every call wants it whole.
#[allow(unsafe_code)]
unsafe impl Send for Inflater {}

impl Inflater {
    /// One inflater; `None` if there is no memory for it (some 11 KiB).
    #[allow(unsafe_code)]
    pub fn new() -> Option<Self> {
        // Sound: takes nothing, gives a state of its own or null.
        NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() }).map(Self)
    }

    /// Inflates the stream at the start of `input`. `None` if that is no stream that ends, or if it gives more than `output`
    /// has room for.
    ///
    /// ```
    /// let mut inflater = trawl_io::Inflater::new().unwrap();
    /// let (stored, mut output) = ([1, 2, 0, 0xfd, 0xff, b'h', b'i', b'!'], [0; 8]);
    /// let inflated = inflater.inflate(&stored, &mut output).unwrap();
    /// assert_eq!((inflated.used, &output[..inflated.written]), (7, &b"hi"[..]));
    /// assert_eq!(inflater.inflate(&stored[..6], &mut output), None);
    /// ```
    #[allow(unsafe_code)]
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Option<Inflated> {
        let (mut used, mut written) = (0, 0);
        // Sound: both slices are as long as said, they cannot overlap, and nothing is kept after the call.
        let result = unsafe {
            libdeflate_sys::libdeflate_deflate_decompress_ex(
                self.0.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                output.as_mut_ptr().cast(),
                output.len(),
                &raw mut used,
                &raw mut written,
            )
        };
        (result == libdeflate_sys::libdeflate_result_LIBDEFLATE_SUCCESS).then_some(Inflated { used, written })
    }
}

impl Drop for Inflater {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // Sound: it came from the library's allocation and is freed once.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}
