//! MapFiles over raw bytes: the input is the index or the data of a map whose other file is good, its checksum file, or its
//! Bloom filter. No panic, no hang, bounded memory; verify never fails on damage.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::LazyLock;
use trawl_hadoop::map::{self, MapReader, MapWriter, MapWriterOptions};
use trawl_hadoop::seq::{OpenOptions, Pack, WriterOptions};
use trawl_hadoop::{Codec, Encode, Limits, class};
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};

fn key(n: u32) -> Vec<u8> {
    let mut key = Vec::new();
    key.put_text(format!("k{n:04}").as_bytes());
    key
}

static GOOD: LazyLock<[Vec<(std::path::PathBuf, Vec<u8>)>; 2]> = LazyLock::new(|| {
    [Pack::None, Pack::Block(Codec::Default)].map(|pack| {
        let disk = FaultFs::new();
        let data = WriterOptions::new(class::TEXT, class::INT, [7; 16]).pack(pack);
        let data = WriterOptions { fs: disk.shared(), block_bytes: 200, ..data };
        let options = MapWriterOptions { interval: 16, ..MapWriterOptions::new(data, [8; 16]) };
        let mut writer = MapWriter::create(Path::new("/m"), options).expect("a map");
        for n in 0..100u32 {
            writer.append(&key(n), &n.to_be_bytes()).expect("room");
        }
        writer.finish().expect("room");
        disk.files().into_iter().collect()
    })
});

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let disk = FaultFs::new();
    disk.create_dir(Path::new("/m")).expect("a disk");
    for (path, good) in &GOOD[usize::from(choice & 1)] {
        disk.open(path, Mode::Truncate).and_then(|f| f.write_at(0, good)).expect("a disk");
    }
    let name = ["/m/index", "/m/data", "/m/.data.crc", "/m/bloom"][usize::from(choice >> 1) % 4];
    disk.open(Path::new(name), Mode::Truncate)
        .and_then(|f| f.set_len(0).and_then(|()| f.write_at(0, bytes)))
        .expect("a disk");
    if !name.ends_with(".crc") {
        let _ = disk.remove_file(&trawl_hadoop::crc::sidecar(Path::new(name)));
    }
    let limits = Limits { stored_bytes: 1 << 20, unpacked_bytes: 1 << 20, index_bytes: 1 << 20 };
    let options = OpenOptions { fs: disk.shared(), limits, ..OpenOptions::default() };
    map::verify(Path::new("/m"), &options, None, &mut |_, _, _| None, &mut |_| {}).expect("damage is listed");
    let Ok(mut map) = MapReader::open(Path::new("/m"), &options) else { return };
    for n in [0, 1, 50, 99, 100] {
        let _ = map.get(&key(n)).map(|v| v.map(<[u8]>::len));
        let _ = map.closest(&key(n)).map(|r| r.is_some());
        let _ = map.closest_before(&key(n)).map(|r| r.is_some());
    }
});
