//! Links as browsers resolve them (the WHATWG URL standard), without the fragment.

use url::Url;

use crate::{Reject, raw};

/// The absolute URL a link on a page leads to: what is stored, fetched and archived. Only `http` and `https` are taken.
///
/// ```
/// assert_eq!(trawl_url::resolve("http://a.example/b/c", "../d#e").as_deref(), Ok("http://a.example/d"));
/// assert_eq!(trawl_url::resolve("http://a.example/", "mailto:x@y").unwrap_err().code(), "scheme");
/// ```
pub fn resolve(base: &str, link: &str) -> Result<String, Reject> {
    Base::new(base)?.resolve(link)
}

/// The absolute URL of a text that needs no base, normalised as browsers do and without its fragment.
pub fn as_found(raw: &str) -> Result<String, Reject> {
    raw::check_len(raw.len())?;
    let text = raw::clean(raw);
    if text.is_empty() {
        return Err(Reject::Empty);
    }
    raw::check_host(&text)?;
    finish(Url::parse(&text)?)
}

/// A page's base, parsed once for all its links.
#[derive(Debug, Clone)]
pub struct Base(Url);

impl Base {
    /// Takes the page's URL, or what its `<base href>` resolves to.
    pub fn new(base: &str) -> Result<Base, Reject> {
        raw::check_len(base.len())?;
        let text = raw::clean(base);
        raw::check_host(&text)?;
        let url = Url::parse(&text).map_err(|_| Reject::Base)?;
        if !is_web(&url) {
            return Err(Reject::Base);
        }
        Ok(Base(url))
    }

    /// Resolves one link, as [`resolve`] does.
    pub fn resolve(&self, link: &str) -> Result<String, Reject> {
        raw::check_len(link.len())?;
        let text = raw::clean(link);
        raw::check_host(&text)?;
        finish(self.0.join(&text)?)
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn finish(mut url: Url) -> Result<String, Reject> {
    if !is_web(&url) {
        return Err(Reject::scheme(url.scheme().as_bytes()));
    }
    raw::check_host_len(url.host_str().map_or(0, str::len))?;
    url.set_fragment(None);
    let text = String::from(url);
    raw::check_len(text.len())?;
    Ok(text)
}
