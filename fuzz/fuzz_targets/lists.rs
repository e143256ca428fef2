//! URL lists of every kind over raw bytes: no panic, no hang, and a list that is read whole is read alike as a file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_lists::{Format, Options, read_stream};

const FORMATS: &str = "lines jsonl json cdxj cdx csv tsv har bookmarks sitemap";

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    let names: Vec<&str> = FORMATS.split(' ').collect();
    // One more than there are formats: then the bytes decide.
    let format =
        names.get(usize::from(*choice) % (names.len() + 1)).map(|name| name.parse::<Format>().expect("a format"));
    let options = if choice & 0x80 == 0 { Options::default() } else { Options::crawl() };
    let mut last = 0;
    let _ = read_stream("fuzz", format, data, &options, &mut |at, item| {
        assert!(at >= last, "items come in their order");
        last = at;
        if let Ok(record) = item
            && let Some(extras) = record.extras
        {
            let value: serde_json::Value = serde_json::from_str(&extras).expect("extras are JSON");
            assert!(value.is_object());
        }
        Ok(())
    });
});
