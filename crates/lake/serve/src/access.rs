//! Tokens and what they stand for.
//!
//! A file of principals holds hashes, never tokens: SHA-256 is enough, since tokens are long random texts that no one can
//! guess, unlike passwords. What a principal may see, the datasets of the lake say (`trawl lake dataset set --principal`).

use crate::failure::Failure;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::{Choice, ConstantTimeEq};
use trawl_query::Principal;
use xxhash_rust::xxh3::xxh3_64;

/// Who may ask: read from a file by the operator's command.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRules {
    /// Whether requests without a token are answered, from public datasets.
    #[serde(default = "yes")]
    pub anonymous: bool,
    /// The tokens.
    #[serde(default)]
    pub token: Vec<TokenRule>,
}

/// One token.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRule {
    /// SHA-256 of the token, 64 hex digits.
    pub sha256: String,
    /// Whose it is: a name that the access list of a dataset may hold.
    pub principal: String,
    /// Groups they belong to: names that access lists may hold as well.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Whether they run the lake: they see every dataset, and the admin calls answer them.
    #[serde(default)]
    pub admin: bool,
}

fn yes() -> bool {
    true
}

impl Default for AccessRules {
    /// Anyone, and only public datasets.
    fn default() -> Self {
        Self { anonymous: true, token: Vec::new() }
    }
}

/// Tokens, ready to be compared.
#[derive(Debug)]
pub(crate) struct Access {
    anonymous: bool,
    tokens: Vec<([u8; 32], Identity)>,
}

/// What a token stands for.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub principal: Principal,
    pub name: Option<Arc<str>>,
    pub mark: u64,
}

impl Access {
    /// Answers no client: in place of rules that cannot be used.
    pub fn nobody() -> Self {
        Self { anonymous: false, tokens: Vec::new() }
    }

    /// Refuses rules that would not do what they say.
    pub fn new(rules: &AccessRules) -> Result<Self, String> {
        let mut tokens = Vec::with_capacity(rules.token.len());
        for rule in &rules.token {
            let hash = decode(&rule.sha256)
                .ok_or_else(|| format!("token of {:?}: expected sha256 of 64 hex digits", rule.principal))?;
            if rule.principal.is_empty() {
                return Err("a token has an empty principal".into());
            }
            if tokens.iter().any(|(known, _)| *known == hash) {
                return Err(format!("the token of {:?} is there twice", rule.principal));
            }
            let names = std::iter::once(&rule.principal).chain(&rule.groups).cloned();
            let principal = if rule.admin { Principal::operator() } else { Principal::named(names) };
            let told = (&rule.principal, &rule.groups, rule.admin);
            let mark = xxh3_64(format!("{told:?}").as_bytes()).max(1);
            tokens.push((hash, Identity { principal, name: Some(rule.principal.as_str().into()), mark }));
        }
        Ok(Self { anonymous: rules.anonymous, tokens })
    }

    /// Who has this token. Every token is compared, whichever fits, so that the time says nothing.
    pub fn identify(&self, token: Option<&str>) -> Result<Identity, Failure> {
        let Some(token) = token else {
            let anyone = Identity { principal: Principal::anyone(), name: None, mark: 0 };
            return if self.anonymous { Ok(anyone) } else { Err(Failure::unauthorized()) };
        };
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for (known, identity) in &self.tokens {
            let fits: Choice = known[..].ct_eq(&hash[..]);
            if bool::from(fits) {
                found = Some(identity);
            }
        }
        found.cloned().ok_or_else(Failure::unauthorized)
    }
}

fn decode(hex: &str) -> Option<[u8; 32]> {
    data_encoding::HEXLOWER_PERMISSIVE.decode(hex.trim().as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(token: &str, principal: &str, admin: bool) -> TokenRule {
        let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(token.as_bytes()));
        TokenRule { sha256, principal: principal.into(), groups: vec!["staff".into()], admin }
    }

    #[test]
    fn a_token_is_its_principal_and_nobody_else() {
        let rules =
            AccessRules { anonymous: false, token: vec![rule("s3cret", "ann", false), rule("root", "ops", true)] };
        let access = Access::new(&rules).unwrap();
        assert_eq!(access.identify(Some("s3cret")).unwrap().name.as_deref(), Some("ann"));
        assert!(access.identify(Some("root")).unwrap().principal.is_operator());
        assert!(access.identify(Some("s3cre")).is_err() && access.identify(Some("")).is_err());
        assert!(access.identify(None).is_err());
        let (ann, ops) = (access.identify(Some("s3cret")).unwrap().mark, access.identify(Some("root")).unwrap().mark);
        assert!(ann != ops && ann != 0 && ops != 0);
        assert!(Access::new(&AccessRules::default()).unwrap().identify(None).is_ok());
    }

    #[test]
    fn rules_that_cannot_be_meant_are_refused() {
        let bad = |rule: TokenRule| Access::new(&AccessRules { anonymous: true, token: vec![rule] }).is_err();
        assert!(bad(TokenRule { sha256: "plain".into(), ..rule("x", "ann", false) }));
        assert!(bad(TokenRule { principal: String::new(), ..rule("x", "ann", false) }));
        let twice = vec![rule("x", "ann", false), rule("x", "bob", false)];
        assert!(Access::new(&AccessRules { anonymous: true, token: twice }).is_err());
    }
}
