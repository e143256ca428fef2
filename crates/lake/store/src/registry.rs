//! Changing what the registry says of a dataset.

use crate::{Dataset, DatasetInfo, Error, Lake, Result};
use trawl_model::UnixMillis;

/// The number of a dataset as people write it: digits alone, the first of them no zero. `+3` and `03` may be typing errors,
/// and a name like a number is one sign away from another dataset.
pub fn dataset_number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok()).flatten()
}

impl Lake {
    /// Changes what the registry says of a dataset that is not dropped, and writes it beside the dataset too, so that it
    /// outlives `index/`. `change` runs again whenever another writer was faster. A call that ends between the two is
    /// repeated. Tells what the registry says now, and whether anything was changed.
    pub fn set_dataset(
        &self,
        now: UnixMillis,
        writer: &str,
        dataset_id: u32,
        mut change: impl FnMut(&mut DatasetInfo),
    ) -> Result<(Dataset, bool)> {
        let unknown = || Error::UnknownDataset { found: dataset_id.to_string() };
        let committed = self.commit(now, writer, |manifest| {
            let dataset = manifest.dataset_mut(dataset_id).filter(|dataset| !dataset.dropped).ok_or_else(unknown)?;
            let before = dataset.info.clone();
            change(&mut dataset.info);
            let after = dataset.info.clone();
            if after.name != before.name {
                after.check()?;
                let namesakes = manifest.datasets.iter().filter(|d| !d.dropped && d.info.name == after.name);
                if namesakes.count() > 1 {
                    return Err(Error::Refused { reason: format!("there is a dataset {:?} already", after.name) });
                }
            }
            Ok(after != before)
        })?;
        let dataset = committed.manifest.dataset(dataset_id).cloned().ok_or_else(unknown)?;
        let (_, noted) = self.commit_dataset(dataset_id, now, writer, |commit| {
            // A process that drops it meanwhile has the last word.
            Ok(!commit.is_dropped() && commit.about.as_ref() != Some(&dataset.info))
        })?;
        Ok((dataset, committed.value || noted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_digits_are_a_number() {
        assert_eq!([dataset_number("3"), dataset_number("4294967295")], [Some(3), Some(u32::MAX)]);
        for text in ["+3", "-3", "03", "0", "", " 3", "3 ", "3.0", "٣", "4294967296", "three"] {
            assert_eq!(dataset_number(text), None, "{text:?}");
        }
    }
}
