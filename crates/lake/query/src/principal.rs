//! Who asks.

use trawl_store::Acl;

/// Who asks: the names an access list may hold. Datasets that `who` may not see are as good as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    names: Vec<String>,
    operator: bool,
    credentials: bool,
}

impl Principal {
    /// An anonymous client: sees public datasets.
    pub fn anyone() -> Self {
        Self { names: Vec::new(), operator: false, credentials: false }
    }

    /// Someone with a name and the groups they belong to.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), operator: false, credentials: false }
    }

    /// The operator of the lake: sees everything. The command line asks as this.
    pub fn operator() -> Self {
        Self { names: Vec::new(), operator: true, credentials: false }
    }

    /// The same, asking for `user:password@` in URLs to be shown as sources have it.
    #[must_use]
    pub fn with_credentials(self, credentials: bool) -> Self {
        Self { credentials, ..self }
    }

    /// Whether user names and passwords in URLs were asked for.
    pub fn wants_credentials(&self) -> bool {
        self.credentials
    }

    /// Whether this one runs the lake, and may know what is denied.
    pub fn is_operator(&self) -> bool {
        self.operator
    }

    /// Whether an access list lets this one in.
    pub fn may_see(&self, acl: &Acl) -> bool {
        self.operator || acl.allows(&self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_decide() {
        let list = Acl::Principals(vec!["ann".into(), "ops".into()]);
        let nobody = Acl::Principals(Vec::new());
        assert!(Principal::anyone().may_see(&Acl::Public));
        assert!(!Principal::anyone().may_see(&list) && !Principal::anyone().may_see(&nobody));
        assert!(Principal::named(["bob".into(), "ops".into()]).may_see(&list));
        assert!(!Principal::named(["bob".into()]).may_see(&list));
        assert!(Principal::operator().may_see(&list) && Principal::operator().may_see(&nobody));
    }
}
