//! What a lake holds, worked out the slow way: every row of every file that the commits of its versions name.

use crate::acts::Disk;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trawl_rows::{Column, Columns, FilePages};
use trawl_store::manifest::DenyTarget;
use trawl_store::{Acl, Lake, Manifest, Version, layout};
use trawl_url::{LakeUrl, SuffixList};

/// (domain, URL) of every row, by dataset.
pub type Rows = BTreeMap<u32, Vec<(String, String)>>;

/// A lake at one moment.
pub struct Moment {
    pub manifest: Arc<Manifest>,
    pub list: SuffixList,
}

/// Rows of versions that were read already: a version does not change.
#[derive(Default)]
pub struct Shelf {
    versions: HashMap<String, Rows>,
}

impl Shelf {
    pub fn moment(&mut self, store: &Disk) -> Moment {
        let lake = Lake::open(store.clone()).unwrap();
        let manifest = lake.current().unwrap();
        for version in &manifest.versions {
            whole(&lake, version);
            self.versions.entry(version.version.clone()).or_insert_with(|| {
                let mut all = Rows::new();
                for (dataset, commit) in version.commits.iter() {
                    let commit =
                        lake.dataset_commit(*dataset, *commit).unwrap().expect("a commit that a version serves");
                    let rows = all.entry(*dataset).or_default();
                    for file in &commit.files {
                        let pages = FilePages::read(&**store, file).unwrap();
                        for step in pages.scan(&**store, Columns::ALL, 1000).unwrap() {
                            let found = step.unwrap().rows;
                            for i in 0..found.len() {
                                let mut url = String::new();
                                found.lake_url_into(i, &mut url);
                                rows.push((found.text(Column::Domain, i).unwrap().to_owned(), url));
                            }
                        }
                    }
                    rows.sort();
                }
                all
            });
        }
        let list = lake.suffix_list(&manifest).unwrap();
        let list = SuffixList::parse(std::str::from_utf8(&list).unwrap()).unwrap();
        Moment { manifest, list }
    }
}

/// Whatever a listed version names must be there.
fn whole(lake: &Lake, version: &Version) {
    let there =
        |path: &str| assert!(lake.store().exists(path).unwrap(), "{path} of version {} is gone", version.version);
    for segment in &version.segments {
        there(&layout::segment_file(&segment.id, "segment.json").unwrap());
        (0..segment.shards)
            .flat_map(|shard| segment.files.keys().map(move |key| (key, shard)))
            .for_each(|(key, shard)| there(&segment.file(key, shard).unwrap()));
    }
    for (dataset, number) in version.commits.iter() {
        let commit = lake.dataset_commit(*dataset, *number).unwrap();
        let commit = commit.unwrap_or_else(|| panic!("commit {number} of dataset {dataset} is gone"));
        commit.files.iter().for_each(|file| there(&file.path));
    }
}

impl Moment {
    pub fn lists(&self, version: &str) -> bool {
        self.manifest.version(version).is_some()
    }

    /// What anybody may see of a version now.
    pub fn shown(&self, shelf: &Shelf, version: &str) -> Rows {
        let manifest = &self.manifest;
        let public = |id: &u32| {
            manifest.dataset(*id).is_some_and(|d| {
                let denied = manifest.deny.iter().any(|deny| deny.target == DenyTarget::Dataset(*id));
                !d.dropped && d.info.acl == Acl::Public && !denied
            })
        };
        let kept = |(_, url): &&(String, String)| {
            !manifest.deny.iter().any(|deny| match &deny.target {
                DenyTarget::Url(denied) => url == denied,
                DenyTarget::Prefix(prefix) => url.starts_with(prefix),
                DenyTarget::Domain(domain) => url.contains(&format!("{domain}/")),
                DenyTarget::Dataset(_) => false,
            })
        };
        let rows = &shelf.versions[version];
        let shown = rows.iter().filter(|(id, _)| public(id));
        shown.map(|(id, rows)| (*id, rows.iter().filter(kept).cloned().collect())).collect()
    }

    /// What anybody may see now.
    pub fn current(&self, shelf: &Shelf) -> Rows {
        self.shown(shelf, &self.manifest.current_version)
    }

    /// The domain that a question about `name` is about.
    pub fn domain_of(&self, name: &str) -> String {
        LakeUrl::parse(&format!("http://{name}/"), &self.list).unwrap().domain().to_owned()
    }
}
