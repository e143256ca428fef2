//! Who asks.

/// Who asks: the names an access list may hold. Datasets that `who` may not see are as good as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    names: Vec<String>,
    operator: bool,
}

impl Principal {
    /// Nobody in particular: sees datasets without an access list.
    pub fn anyone() -> Self {
        Self { names: Vec::new(), operator: false }
    }

    /// Someone with a name and the groups they belong to.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), operator: false }
    }

    /// Whoever runs the lake: sees everything. The command line asks as this.
    pub fn operator() -> Self {
        Self { names: Vec::new(), operator: true }
    }

    /// Whether an access list lets this one in; no list means everyone.
    pub fn may_see(&self, acl: Option<&[String]>) -> bool {
        self.operator || acl.is_none_or(|list| list.iter().any(|allowed| self.names.contains(allowed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_decide() {
        let list = ["ann".to_owned(), "ops".to_owned()];
        let list = Some(&list[..]);
        assert!(Principal::anyone().may_see(None));
        assert!(!Principal::anyone().may_see(list));
        assert!(!Principal::anyone().may_see(Some(&[])));
        assert!(Principal::named(["bob".into(), "ops".into()]).may_see(list));
        assert!(!Principal::named(["bob".into()]).may_see(list));
        assert!(Principal::operator().may_see(list) && Principal::operator().may_see(Some(&[])));
    }
}
