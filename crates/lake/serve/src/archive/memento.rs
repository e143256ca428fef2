//! Memento (RFC 7089): which captures there are of a URL, the one nearest to a time, and its bytes as they were.
//!
//! ```text
//! GET /timegate/URL            Accept-Datetime ─► 302 to the memento nearest to it
//! GET /timemap/link/URL        all mementos, application/link-format
//! GET /web/{14 digits}id_/URL  the memento: status, type and body as archived; nothing in it is rewritten
//! ```
//! Clients that know the Wayback Machine find the first two below `/web/` as well: `/web/URL`, `/web/timemap/link/URL`.

use crate::asker::{Asker, Coding};
use crate::failure::Failure;
use crate::params::Value;
use crate::server::State;
use crate::stream::{Out, Packing, stream};
use crate::v1::{Shared, sandbox};
use crate::work::{Answer, ask_bytes, cacheable};
use axum::extract::OriginalUri;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::fmt::Write as _;
use std::sync::Arc;
use trawl_http::Head;
use trawl_model::UnixMillis;
use trawl_query::{Archives, CdxQuery, CdxRow, MatchType, Pinned, Principal, QueryError, Replayed, UrlHit};

/// Mementos in one TimeMap at most.
const MAX_MEMENTOS: usize = 100_000;

/// `GET /timemap/link/{url}`.
pub(crate) async fn timemap(
    axum::extract::State(state): Shared,
    asker: Asker,
    OriginalUri(uri): OriginalUri,
) -> Answer {
    timemap_of(&state, asker, target(&uri, "/timemap/link/")?).await
}

async fn timemap_of(state: &Arc<State>, asker: Asker, url: String) -> Answer {
    ask_bytes(state, asker, "application/link-format", None, move |pinned, who, facts| {
        let rows = mementos(pinned, &url, who)?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Err(nothing(&url)) };
        facts.rows = Some(rows.len() as u64);
        let (from, until) = (http_date(first.item.ts), http_date(last.item.ts));
        let url = header_text(&url);
        let mut out = format!("<{url}>; rel=\"original\",\n</timegate/{url}>; rel=\"timegate\",\n");
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "</timemap/link/{url}>; rel=\"self\"; type=\"application/link-format\"; from=\"{from}\"; until=\"{until}\""
        );
        for (at, row) in rows.iter().enumerate() {
            let ends = match (at == 0, at + 1 == rows.len()) {
                (true, true) => "first last memento",
                (true, false) => "first memento",
                (false, true) => "last memento",
                (false, false) => "memento",
            };
            let _ = write!(out, ",\n<{}>; rel=\"{ends}\"; datetime=\"{}\"", path_of(row), http_date(row.item.ts));
        }
        out.push('\n');
        Ok(out.into())
    })
    .await
}

/// `GET /timegate/{url}`.
pub(crate) async fn timegate(
    axum::extract::State(state): Shared,
    asker: Asker,
    headers: HeaderMap,
    OriginalUri(uri): OriginalUri,
) -> Answer {
    timegate_of(&state, asker, &headers, target(&uri, "/timegate/")?).await
}

async fn timegate_of(state: &Arc<State>, asker: Asker, headers: &HeaderMap, url: String) -> Answer {
    let asked = match headers.get("accept-datetime") {
        None => None,
        Some(value) => {
            let parsed = value.to_str().ok().and_then(|text| trawl_model::date::http_date(text, UnixMillis(0)));
            Some(parsed.ok_or_else(|| Failure::bad_request("Accept-Datetime: expected a date as HTTP writes it"))?)
        }
    };
    let private = asker.mark != 0;
    // What the lake says is not what is sent: it must come as it is, whatever the client has or takes.
    let asker = Asker { known: None, coding: Coding::Plain, ..asker };
    // Lines: the way to the memento, then the links.
    let found = ask_bytes(state, asker, "text/plain", None, move |pinned, who, _| {
        let rows = mementos(pinned, &url, who)?;
        let at = nearest(&rows, asked).ok_or_else(|| nothing(&url))?;
        let way = rows.get(at).map(path_of).unwrap_or_default();
        Ok(format!("{way}\n{}", links(&url, &ends(&rows, at))).into())
    })
    .await?;
    let found = axum::body::to_bytes(found.into_body(), 1 << 20).await.map_err(|_| Failure::internal())?;
    let mut lines = found.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok());
    let mut response = StatusCode::FOUND.into_response();
    for name in [header::LOCATION, header::LINK] {
        lines.next().into_iter().for_each(|value| drop(response.headers_mut().insert(&name, value)));
    }
    cacheable(&mut response, private);
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-datetime"));
    Ok(response)
}

/// `GET /web/{timestamp}id_/{url}`, and what else the Wayback Machine has there.
pub(crate) async fn memento(
    axum::extract::State(state): Shared,
    asker: Asker,
    headers: HeaderMap,
    OriginalUri(uri): OriginalUri,
) -> Answer {
    let rest = target(&uri, "/web/")?;
    match Place::of(&rest)? {
        Place::TimeMap(url) => timemap_of(&state, asker, url).await,
        Place::TimeGate(url) => timegate_of(&state, asker, &headers, url).await,
        Place::Memento(at, url) => replay(&state, asker, url, at).await,
        // Nothing is rewritten here, so every other form of a memento leads to the raw one.
        Place::Raw(digits, url) => redirect(&address(&digits, &url)),
    }
}

/// What an address below `/web/` stands for.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    TimeMap(String),
    TimeGate(String),
    Memento(UnixMillis, String),
    Raw(String, String),
}

impl Place {
    fn of(rest: &str) -> Result<Self, Failure> {
        if let Some(url) = rest.strip_prefix("timemap/link/").or_else(|| rest.strip_prefix("*/")) {
            return Ok(Self::TimeMap(crooked(url)));
        }
        let (stamp, url) = rest.split_once('/').unwrap_or((rest, ""));
        let digits = stamp.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, form) = stamp.split_at_checked(digits).unwrap_or((stamp, ""));
        let is_form = form.strip_suffix('_').is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()));
        if !(is_form || (form.is_empty() && !digits.is_empty())) || url.is_empty() {
            // A URL begins with its scheme or its host: neither is a timestamp.
            return Ok(Self::TimeGate(crooked(rest)));
        }
        let at = super::cdx::Digits::parse(digits).and_then(|digits| digits.from());
        let at = at.ok_or_else(|| Failure::bad_request("expected a timestamp of up to 14 digits"))?;
        Ok(if form == "id_" { Self::Memento(at, crooked(url)) } else { Self::Raw(digits.to_owned(), crooked(url)) })
    }
}

async fn replay(state: &Arc<State>, asker: Asker, url: String, at: UnixMillis) -> Answer {
    let kind = HeaderValue::from_static("application/octet-stream");
    let mine = state.clone();
    stream(state, asker, kind, Packing::AS_IS, move |pinned, who, out| {
        let archives = mine.archives.as_ref().ok_or(crate::v1::NO_ARCHIVES)?;
        match memento_at(pinned, &url, at, who) {
            Err(QueryError::NoMemento { .. }) => lead_to_another(pinned, archives, &url, at, who, out),
            row => pinned.replay(archives, &row?, who, &mut |found| hand_out(found, out)),
        }
    })
    .await
}

/// The memento of a URL that is nearest to a time.
fn memento_at(pinned: &Pinned, url: &str, at: UnixMillis, who: &Principal) -> Result<UrlHit, QueryError> {
    let row = pinned.capture(None, url, Some(at), who)?;
    if row.item.is_memento() { Ok(row) } else { Err(nothing(url)) }
}

/// Leads from a URL that was captured only with the other scheme, or only with or without `www.`, to the nearest of those
/// mementos, as the Wayback Machine does; and from an escaped backslash, since clients escape those that a URL was found with.
/// Each is looked up, so a page with many missing parts costs little.
fn lead_to_another(
    pinned: &Pinned,
    archives: &Archives,
    url: &str,
    at: UnixMillis,
    who: &Principal,
    out: &mut Out<'_>,
) -> Result<(), QueryError> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let with_or_without = |rest: &str| rest.strip_prefix("www.").map_or_else(|| format!("www.{rest}"), str::to_owned);
    let slashed = with_slashes(rest, ESCAPED);
    let mut rests = vec![rest, &slashed];
    rests.dedup();
    let rests: Vec<_> = rests.into_iter().flat_map(|rest| [rest.to_owned(), with_or_without(rest)]).collect();
    let of = |scheme: &'static str| rests.iter().map(move |rest| format!("{scheme}://{rest}"));
    let mut best: Option<(u64, String)> = None;
    for spelling in of("http").chain(of("https")) {
        let row = match memento_at(pinned, &spelling, at, who) {
            Ok(row) => row,
            Err(QueryError::NoMemento { .. } | QueryError::BadUrl { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Some(ts) = row.item.ts else { continue };
        let far = ts.0.abs_diff(at.0);
        if best.as_ref().is_none_or(|(known, _)| far < *known) && !leads_back(pinned, archives, &row, who)? {
            let url = trawl_url::without_userinfo(&row.item.url);
            best = Some((far, address(&ts.digits14(), &url)));
        }
    }
    let (_, path) = best.ok_or_else(|| nothing(url))?;
    let location = HeaderValue::from_str(&path).map_err(|_| nothing(url))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, location);
    out.start(StatusCode::FOUND, headers);
    Ok(())
}

/// Whether a memento is a redirect to another scheme of its own URL, or to it with or without `www.`, of which there is no
/// memento: a client that asks for that one must not be redirected here, or it goes round in circles between the two.
fn leads_back(pinned: &Pinned, archives: &Archives, row: &UrlHit, who: &Principal) -> Result<bool, QueryError> {
    let is_redirect = row.item.status.is_some_and(|status| (300..400).contains(&status));
    if !is_redirect {
        return Ok(false);
    }
    let mut target = None;
    let read = pinned.replay(archives, row, who, &mut |found| {
        target = found.head.as_deref().and_then(|head| target_of(&row.item.url, &Head::new(head)));
        Ok(())
    });
    match read {
        // A record that cannot be read redirects nowhere; a request for it gets the error.
        Ok(()) | Err(QueryError::NoArchive { .. } | QueryError::NoCapture { .. }) => {}
        Err(error) => return Err(error),
    }
    let (Some(target), Some(ts)) = (target, row.item.ts) else { return Ok(false) };
    if bare(&target) != bare(&row.item.url) {
        return Ok(false);
    }
    match memento_at(pinned, &target, ts, who) {
        Err(QueryError::NoMemento { .. } | QueryError::BadUrl { .. }) => Ok(true),
        found => found.map(|_| false),
    }
}

/// What spellings of a URL have in common that [`lead_to_another`] takes for each other.
fn bare(url: &str) -> Option<String> {
    let url = trawl_url::WebUrl::parse(url).ok()?;
    let (_, rest) = url.as_str().split_once("://")?;
    Some(with_slashes(rest.strip_prefix("www.").unwrap_or(rest), ESCAPED))
}

/// Where a response to a URL redirects to.
fn target_of(url: &str, head: &Head<'_>) -> Option<String> {
    let target = head.redirect()?;
    let target = trawl_url::WebUrl::parse(url).and_then(|base| base.join(&target)).ok()?;
    Some(target.as_str().to_owned())
}

/// A capture as it was answered then, under headers that keep it from doing anything now.
fn hand_out(found: Replayed<'_>, out: &mut Out<'_>) -> Result<(), QueryError> {
    let mut headers = HeaderMap::new();
    let head = found.head.as_deref().map(Head::new);
    let status = head.as_ref().and_then(Head::status).and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.filter(|status| status.as_u16() >= 200).unwrap_or(StatusCode::OK);
    let kind = found.content_type.as_deref().and_then(|kind| HeaderValue::from_str(kind).ok());
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    sandbox(&mut headers);
    let url = found.row.item.url.as_str();
    let ts = found.row.item.ts;
    if let Ok(date) = HeaderValue::from_str(&http_date(ts)) {
        headers.insert("memento-datetime", date);
    }
    if let Ok(links) = HeaderValue::from_str(&links(&trawl_url::without_userinfo(url), &[])) {
        headers.insert(header::LINK, links);
    }
    // A redirect leads to the memento of its target, or clients would leave the archive.
    let target = head.as_ref().filter(|_| status.is_redirection()).and_then(|head| target_of(url, head));
    if let (Some(target), Some(ts)) = (target, ts)
        && let Ok(value) = HeaderValue::from_str(&address(&ts.digits14(), &target))
    {
        headers.insert(header::LOCATION, value);
    }
    crate::v1::name_record(&mut headers, "trawl-capture", found.row);
    found.body_of.into_iter().for_each(|row| crate::v1::name_record(&mut headers, "trawl-body-of", row));
    out.start(status, headers);
    crate::v1::decoded(found.head.as_deref(), found.body, out)
}

/// Captures of a URL that can be replayed, by time.
fn mementos(pinned: &Pinned, url: &str, who: &Principal) -> Result<Vec<CdxRow>, QueryError> {
    let query = CdxQuery { url: url.to_owned(), match_type: MatchType::Exact, ..CdxQuery::default() };
    let rows = pinned.cdx(&query, who)?;
    let mut found = Vec::new();
    for page in 0..rows.pages() {
        let stretch = rows.page(page)?.into_owned().into_iter();
        found.extend(stretch.filter(|row| row.item.is_memento()));
        if found.len() > MAX_MEMENTOS {
            found.truncate(MAX_MEMENTOS);
            break;
        }
    }
    // Rows of an index whose archives are elsewhere lead to nothing: they are named only where there is nothing else.
    if found.iter().any(|row| pinned.has_archives(row.dataset_id)) {
        found.retain(|row| pinned.has_archives(row.dataset_id));
    }
    found.sort_by_key(|row| row.item.ts);
    Ok(found)
}

/// Which of the mementos is nearest to a time; the last one, if none is given.
fn nearest(rows: &[CdxRow], at: Option<UnixMillis>) -> Option<usize> {
    match at {
        None => rows.len().checked_sub(1),
        Some(at) => {
            // By whole seconds: mementos are named so, and so is the time that is asked for.
            let second = |ts: UnixMillis| ts.0.div_euclid(1000);
            let far = |row: &CdxRow| row.item.ts.map_or(u64::MAX, |ts| second(ts).abs_diff(second(at)));
            rows.iter().enumerate().min_by_key(|(_, row)| far(row)).map(|(place, _)| place)
        }
    }
}

/// The mementos that a TimeGate names beside the one it chose: the first, the last, and the neighbours.
fn ends(rows: &[CdxRow], chosen: usize) -> Vec<(String, &CdxRow)> {
    let last = rows.len().saturating_sub(1);
    let mut places = vec![0, chosen.saturating_sub(1), chosen, (chosen + 1).min(last), last];
    places.dedup();
    let named = |place: usize| {
        let mut rel: Vec<&str> = [(place == 0, "first"), (place == last, "last")]
            .into_iter()
            .chain([(place + 1 == chosen, "prev"), (place == chosen + 1, "next")])
            .filter_map(|(is_so, name)| is_so.then_some(name))
            .collect();
        rel.push("memento");
        Some((rel.join(" "), rows.get(place)?))
    };
    places.into_iter().filter_map(named).collect()
}

fn nothing(url: &str) -> QueryError {
    QueryError::NoMemento { url: url.chars().take(200).collect() }
}

/// A `Link` header: where the URL, its TimeGate and its TimeMap are, and some mementos.
fn links(url: &str, mementos: &[(String, &CdxRow)]) -> String {
    let url = header_text(url);
    let mut text = format!(
        "<{url}>; rel=\"original\", </timegate/{url}>; rel=\"timegate\", \
         </timemap/link/{url}>; rel=\"timemap\"; type=\"application/link-format\""
    );
    for (rel, row) in mementos {
        // Writing to a String cannot fail.
        let _ = write!(text, ", <{}>; rel=\"{rel}\"; datetime=\"{}\"", path_of(row), http_date(row.item.ts));
    }
    text
}

fn redirect(to: &str) -> Answer {
    let location =
        HeaderValue::from_str(to).map_err(|_| Failure::bad_request("the address cannot be redirected to"))?;
    let mut response: Response = StatusCode::FOUND.into_response();
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn path_of(row: &CdxRow) -> String {
    address(&row.item.ts.map(UnixMillis::digits14).unwrap_or_default(), &row.item.url)
}

/// The address of a raw memento. A backslash in front of the query is a slash to whoever parses the URL; escaped, it would be
/// another URL.
fn address(digits: &str, url: &str) -> String {
    format!("/web/{digits}id_/{}", header_text(&with_slashes(url, &["\\"])))
}

/// A backslash as clients send it.
const ESCAPED: &[&str] = &["%5C", "%5c"];

/// A URL with slashes for these texts, in front of its query.
fn with_slashes(url: &str, texts: &[&str]) -> String {
    let (path, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    texts.iter().fold(path.to_owned(), |path, text| path.replace(text, "/")) + query
}

/// A URL as it may stand in a header or between angle brackets.
fn header_text(url: &str) -> String {
    const UNFIT: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS
        .add(b' ')
        .add(b'<')
        .add(b'>')
        .add(b'"')
        .add(b'\\')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'}');
    percent_encoding::utf8_percent_encode(url, UNFIT).to_string()
}

/// What stands behind a prefix of the address, query included, exactly as it was sent.
fn target(uri: &Uri, prefix: &str) -> Result<String, Failure> {
    let all = uri.path_and_query().map_or("", |target| target.as_str());
    let rest = all.strip_prefix(prefix).filter(|rest| !rest.is_empty());
    Ok(crooked(rest.ok_or_else(|| Failure::bad_request("a URL is missing at the end of the address"))?))
}

/// Proxies and browsers fold the two slashes of a scheme into one.
fn crooked(url: &str) -> String {
    // Some clients escape the whole of it, cdx_toolkit all but the slashes.
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    if lower.starts_with("http%3a") || lower.starts_with("https%3a") {
        return percent_encoding::percent_decode_str(url).decode_utf8_lossy().into_owned();
    }
    for scheme in ["http:/", "https:/"] {
        if let Some(rest) = url.strip_prefix(scheme)
            && !rest.starts_with('/')
        {
            return format!("{scheme}/{rest}");
        }
    }
    url.to_owned()
}

/// A time as HTTP writes it.
fn http_date(ts: Option<UnixMillis>) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let ts = ts.unwrap_or_default();
    let (year, month, day, h, m, s, _) = ts.civil();
    let weekday = usize::try_from(ts.0.div_euclid(86_400_000).rem_euclid(7)).unwrap_or(0);
    let name = |names: &[&'static str], at: usize| names.get(at).copied().unwrap_or_default();
    let (weekday, month) = (name(&DAYS, weekday), name(&MONTHS, (month as usize).saturating_sub(1)));
    format!("{weekday}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_crooked_addresses() {
        assert_eq!(http_date(Some(UnixMillis(784_111_777_000))), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(Some(UnixMillis(0))), "Thu, 01 Jan 1970 00:00:00 GMT");
        let uri: Uri = "/web/2024id_/http:/a.com/x?y=1".parse().unwrap();
        assert_eq!(target(&uri, "/web/").unwrap(), "2024id_/http:/a.com/x?y=1");
        assert_eq!(crooked("http:/a.com/x"), "http://a.com/x");
        assert_eq!(crooked("http%3A%2F%2Fa.com%2Fx%3Fy"), "http://a.com/x?y");
        assert_eq!(crooked("http%3A//a.com/x%3Fy"), "http://a.com/x?y");
        assert_eq!(crooked("http://a.com/%2F"), "http://a.com/%2F");
        assert!(target(&"/web/".parse().unwrap(), "/web/").is_err());
    }

    #[test]
    fn places_below_web() {
        let of = |rest: &str| Place::of(rest).unwrap();
        let (url, at) = ("http://a.com/x?y=1".to_owned(), UnixMillis(1_704_067_200_000));
        assert_eq!(of("2024id_/http://a.com/x?y=1"), Place::Memento(at, url.clone()));
        assert_eq!(of("2024id_/http:/a.com/x?y=1"), Place::Memento(at, url.clone()));
        for other in ["2024", "2024im_", "2024mp_", "2024if_"] {
            assert_eq!(of(&format!("{other}/{url}")), Place::Raw("2024".into(), url.clone()), "{other}");
        }
        assert_eq!(of(&url), Place::TimeGate(url.clone()));
        assert_eq!(of("a.com/x_/"), Place::TimeGate("a.com/x_/".into()));
        assert_eq!(of("1und1.de/"), Place::TimeGate("1und1.de/".into()));
        assert_eq!(of(&format!("timemap/link/{url}")), Place::TimeMap(url.clone()));
        assert_eq!(of(&format!("*/{url}")), Place::TimeMap(url));
        assert!(Place::of("20241301id_/http://a.com/").is_err() && Place::of("id_/http://a.com/").is_err());
    }

    #[test]
    fn backslashes_are_slashes_in_front_of_the_query() {
        assert_eq!(address("2024", r"http:\\a.com\b\c?d=\"), "/web/2024id_/http://a.com/b/c?d=%5C");
        assert_eq!(address("2024", "http://a.com/b%5Cc d"), "/web/2024id_/http://a.com/b%5Cc%20d");
        assert_eq!(with_slashes("a.com/b%5Cc%5cd?e=%5C", ESCAPED), "a.com/b/c/d?e=%5C");
    }
}
