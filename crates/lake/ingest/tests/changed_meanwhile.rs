//! Sources that change between the moment their bytes were hashed and the moment they are read: rows of one file never count as
//! those of another.

mod common;

use common::{file, new_lake, settings, take, urls, write};
use std::path::Path;
use trawl_ingest::source;

#[test]
fn a_file_that_another_takes_the_place_of_is_refused() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "first", "http://a.com/0\n")], &settings(&fs, "w1")).unwrap();
    let before = lake.dataset_newest(1).unwrap();
    let source = file(&fs, "list", "http://a.com/1\nhttp://a.com/2\n");
    write(&fs, "new", b"http://b.com/1\nhttp://b.com/2\nhttp://b.com/3\n");
    fs.rename(Path::new("new"), Path::new("list")).unwrap();
    let refused = take(&lake, vec![source], &settings(&fs, "w2")).unwrap_err().to_string();
    assert!(refused.contains("list changed while it was read"), "{refused}");
    assert_eq!(lake.dataset_newest(1).unwrap(), before);
    // Read again from the beginning, it is taken as what it is by now.
    let source = source::open(&fs, Path::new("list"), None).unwrap();
    take(&lake, vec![source], &settings(&fs, "w3")).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/0", "http://b.com/1", "http://b.com/2", "http://b.com/3"]);
}

#[test]
fn a_file_that_only_grows_is_taken_as_far_as_it_went() {
    let (fs, lake) = new_lake();
    let source = file(&fs, "list", "http://a.com/1\n");
    write(&fs, "list", b"http://a.com/1\nhttp://a.com/2\n");
    take(&lake, vec![source], &settings(&fs, "w1")).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1"]);
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let (fs, lake) = new_lake();
    let source = file(&fs, "list", "http://a.com/1\nhttp://a.com/2\n");
    fs.remove_file(Path::new("list")).unwrap();
    write(&fs, "list", b"http://a.com/1\n");
    take(&lake, vec![source], &settings(&fs, "w1")).unwrap_err();
    assert_eq!(lake.dataset_newest(1).unwrap(), None);
}
