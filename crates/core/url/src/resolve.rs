//! Links as browsers resolve them (the WHATWG URL standard), without the fragment.

use url::Url;

use crate::{MAX_URL_LEN, Reject};

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
    check_len(raw)?;
    if raw.trim_matches(|c| c <= ' ').is_empty() {
        return Err(Reject::Empty);
    }
    finish(Url::parse(raw)?)
}

/// A page's base, parsed once for all its links.
#[derive(Debug, Clone)]
pub struct Base(Url);

impl Base {
    /// Takes the page's URL, or what its `<base href>` resolves to.
    pub fn new(base: &str) -> Result<Base, Reject> {
        check_len(base)?;
        let url = Url::parse(base).map_err(|_| Reject::Base)?;
        if !is_web(&url) {
            return Err(Reject::Base);
        }
        Ok(Base(url))
    }

    /// Resolves one link, as [`resolve`] does.
    pub fn resolve(&self, link: &str) -> Result<String, Reject> {
        check_len(link)?;
        finish(self.0.join(link)?)
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn check_len(text: &str) -> Result<(), Reject> {
    if text.len() > MAX_URL_LEN {
        return Err(Reject::TooLong { len: text.len(), limit: MAX_URL_LEN });
    }
    Ok(())
}

fn finish(mut url: Url) -> Result<String, Reject> {
    if !is_web(&url) {
        return Err(Reject::scheme(url.scheme().as_bytes()));
    }
    url.set_fragment(None);
    let text = String::from(url);
    check_len(&text)?;
    Ok(text)
}
