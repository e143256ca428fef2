//! What a site's policy folds together on top of the common rules.

use crate::dots;

/// Per-host folding. The default folds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Keep only these query keys (decoded), instead of dropping the tracking keys.
    pub query_allow: Option<Vec<String>>,
    /// Drop these query keys (decoded) besides the tracking keys.
    pub query_deny: Vec<String>,
    /// `/a/` is `/a`.
    pub fold_trailing_slash: bool,
    /// `/a/index.html` is `/a/`.
    pub fold_index: bool,
    /// Upper and lower case are the same in path and query.
    pub fold_case: bool,
    /// `/a//b` is `/a/b`.
    pub collapse_slashes: bool,
    /// Grows with each change of the policy; keys of different versions do not compare.
    pub version: u16,
}

/// Keys that name where a visitor came from, not what the page shows.
fn is_tracking(key: &str) -> bool {
    matches!(
        key,
        "utm_source"
            | "utm_medium"
            | "utm_campaign"
            | "utm_term"
            | "utm_content"
            | "gclid"
            | "fbclid"
            | "msclkid"
            | "mc_eid"
            | "ref"
            | "ref_src"
            | "ref_url"
            | "igshid"
            | "yclid"
            | "_ga"
    )
}

fn is_index(segment: &str) -> bool {
    matches!(segment, "index.html" | "index.htm" | "index.php" | "default.asp" | "default.aspx")
}

impl Policy {
    /// Folds the path that starts at `start`. Case goes first and cutting repeats, so that folding a folded path changes nothing.
    pub(super) fn fold_path(&self, start: usize, out: &mut String) {
        if self.fold_case
            && let Some(path) = out.get_mut(start..)
        {
            path.make_ascii_lowercase();
        }
        if self.collapse_slashes {
            let path = out.get(start..).unwrap_or_default().to_owned();
            out.truncate(start);
            dots::collapse(&path, out);
        }
        while self.cut_index(start, out) | self.cut_slash(start, out) {}
    }

    fn cut_index(&self, start: usize, out: &mut String) -> bool {
        let path = out.get(start..).unwrap_or_default();
        let segment = path.rfind('/').map_or(0, |slash| slash + 1);
        let cut = self.fold_index && path.get(segment..).is_some_and(is_index);
        if cut {
            out.truncate(start + segment);
        }
        cut
    }

    fn cut_slash(&self, start: usize, out: &mut String) -> bool {
        let cut = self.fold_trailing_slash && out.len() > start + 1 && out.ends_with('/');
        if cut {
            out.pop();
        }
        cut
    }

    /// Whether a query key stays. `key` is in canonical spelling, `decoded` what it stands for; both folded already.
    pub(super) fn keeps(&self, key: &str, decoded: impl Iterator<Item = u8> + Clone) -> bool {
        let same = |name: &String| {
            let fold = |byte: u8| if self.fold_case { byte.to_ascii_lowercase() } else { byte };
            decoded.clone().eq(name.bytes().map(fold))
        };
        match &self.query_allow {
            Some(allow) => allow.iter().any(same),
            // Tracking keys hold unreserved bytes only, so their canonical spelling is the key itself.
            None => !is_tracking(key) && !self.query_deny.iter().any(same),
        }
    }
}
