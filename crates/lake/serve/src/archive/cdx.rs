//! `GET /cdx`: the CDX server API of the Wayback Machine, as far as clients use it.

use super::cdx_resume::{Next, Resume};
use super::cdx_rows::{Collapse, FIELD_NAMES, Fields, Pick, RowFilter};
use crate::asker::Asker;
use crate::failure::Failure;
use crate::params::{Declared, Key, UrlText, Value, choice, pairs, params};
use crate::stream::{Out, Packing, gone, stream};
use crate::v1::Shared;
use crate::work::Answer;
use axum::extract::RawQuery;
use axum::http::HeaderValue;
use serde_json::{Value as Json, json};
use trawl_model::UnixMillis;
use trawl_query::{CdxQuery, CdxRow, CdxRows, MatchType, QueryError};

/// The default fields: those of the Wayback Machine, and those of pywb.
const CDX_FIELDS: &str = "urlkey,timestamp,original,mimetype,statuscode,digest,length";
const CDXJ_FIELDS: &str = "url,mime,status,digest,length,offset,filename";
/// Captures that are sorted by nearness at most.
const MAX_CLOSEST: usize = 100_000;

choice! {
    /// What of a URL has to fit.
    Match {
        /// All of it.
        Exact = "exact",
        /// It begins so.
        Prefix = "prefix",
        /// Its host.
        Host = "host",
        /// Its host, or one below.
        Domain = "domain",
    }
}

choice! {
    /// The form of the answer.
    Output {
        /// A line of fields for each capture.
        Text = "text",
        /// An array of arrays, the first with the names.
        Json = "json",
        /// Key, time and a JSON object a line, as pywb has it.
        Cdxj = "cdxj",
    }
}

choice! {
    /// The order of captures.
    Sort {
        /// By key and time.
        Default = "default",
        /// The other way round.
        Reverse = "reverse",
        /// By nearness to `closest`.
        Closest = "closest",
    }
}

/// The beginning of a time of 14 digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digits(String);

impl Value for Digits {
    const EXPECTED: &'static str = "1 to 14 digits of yyyyMMddhhmmss";

    fn parse(text: &str) -> Option<Self> {
        let fits = (1..=14).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        let whole = Self(text.to_owned());
        (fits && whole.from().is_some()).then_some(whole)
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^(19|20)[0-9]{2}((0[1-9]|1[0-2])((0[1-9]|1[0-9]|2[0-8])([01][0-9]([0-5][0-9]([0-5][0-9])?)?)?)?)?$" })
    }
}

impl Digits {
    /// Its first moment.
    pub(crate) fn from(&self) -> Option<UnixMillis> {
        let filled: String = self.0.chars().chain("00000101000000".chars().skip(self.0.len())).collect();
        moment(&filled)
    }

    /// Its last moment.
    fn to(&self) -> Option<UnixMillis> {
        let mut filled: String = self.0.chars().chain("99991231235959".chars().skip(self.0.len())).collect();
        // Months have different lengths.
        while self.0.len() < 8 && moment(&filled).is_none() {
            let day: u32 = filled.get(6..8)?.parse().ok()?;
            if day <= 28 {
                return None;
            }
            filled.replace_range(6..8, &format!("{:02}", day - 1));
        }
        moment(&filled).map(|ts| UnixMillis(ts.0 + 999))
    }
}

fn moment(digits: &str) -> Option<UnixMillis> {
    let number = |range: std::ops::Range<usize>| digits.get(range).and_then(|text| text.parse::<u32>().ok());
    let year = i64::from(number(0..4)?);
    UnixMillis::from_civil(year, number(4..6)?, number(6..8)?, number(8..10)?, number(10..12)?, number(12..14)?, 0)
}

/// Several values of one parameter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Many(pub(crate) Vec<String>);

impl Value for Many {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Option<Self> {
        Some(Self(vec![text.to_owned()]))
    }

    fn more(&mut self, other: Self) -> bool {
        self.0.extend(other.0);
        true
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": { "type": "string", "format": "trawl-cdx-filter" } })
    }
}

/// Names of fields, separated by commas.
#[derive(Debug, Clone)]
pub(crate) struct FieldList(String);

impl Value for FieldList {
    const EXPECTED: &'static str = "names of fields, separated by commas";

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }

    fn schema() -> Json {
        let names = FIELD_NAMES.join("|");
        json!({ "type": "string", "pattern": format!("^({names})(,({names}))*$") })
    }
}

/// `field` or `field:N`, several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collapses(Many);

impl Value for Collapses {
    const EXPECTED: &'static str = "a field, or a field and a number";

    fn parse(text: &str) -> Option<Self> {
        Many::parse(text).map(Self)
    }

    fn more(&mut self, other: Self) -> bool {
        self.0.more(other.0)
    }

    fn schema() -> Json {
        let pattern = format!("^({})(:[0-9]{{1,4}})?$", FIELD_NAMES.join("|"));
        json!({ "type": "array", "items": { "type": "string", "pattern": pattern } })
    }
}

params! {
    /// Which captures, and in which form.
    #[allow(non_snake_case)]
    CdxParams {
        /// The URL; `example.com/*` and `*.example.com` stand for matchType prefix and domain.
        url: UrlText,
        /// What of it has to fit; exact if not given.
        matchType: Match,
        /// Captures not before the beginning of this.
        from: Digits,
        /// Captures not after the end of this.
        to: Digits,
        /// Captures at most; of a negative number the last ones.
        limit: i64,
        /// Only this page, from 0.
        page: u32,
        /// Taken and not used: pages have their own size.
        pageSize: u32,
        /// Answers how many pages there are.
        showNumPages: bool,
        /// text if not given.
        output: Output,
        /// Fields, separated by commas.
        fl: FieldList,
        /// The same.
        fields: FieldList,
        /// `[!][=|~]field:value`: a regular expression that the field has to be, or with `=` its text, or with `~` a part of it.
        filter: Many,
        /// `field` or `field:N`: of neighbours with the same (beginning of the) field only the first.
        collapse: Collapses,
        /// closest if there is such a time, else default, if not given.
        sort: Sort,
        /// With sort=closest or no sort, to which time.
        closest: Digits,
        /// With showResumeKey the key of an answer before.
        resumeKey: Key,
        /// Ends a cut answer with the key by which the next one goes on.
        showResumeKey: bool,
        /// With a negative limit: the last ones, found fast.
        fastLatest: bool,
        /// Only this dataset, by number or name.
        dataset: String,
        /// Taken and not used: answers are compressed where Accept-Encoding says so.
        gzip: bool,
        /// Taken and not used: revisits are resolved when they are fetched.
        resolveRevisits: bool,
        /// Taken and not used: there is no fuzzy matching.
        allowFuzzy: bool,
    }
}

/// `GET /cdx`.
pub(crate) async fn cdx(axum::extract::State(state): Shared, asker: Asker, RawQuery(query): RawQuery) -> Answer {
    // Clients fill in templates: what they leave empty, they do not mean.
    let mut given = pairs(query.as_deref().unwrap_or_default())?;
    given.retain(|(_, value)| !value.is_empty());
    let params = CdxParams::read(given)?;
    let (url, match_type) = wanted(&params)?;
    let output = params.output.unwrap_or(Output::Text);
    let default = if output == Output::Cdxj { CDXJ_FIELDS } else { CDX_FIELDS };
    let listed = params.fl.as_ref().or(params.fields.as_ref());
    let fields = Fields::of(listed.map_or(default, |list| &list.0))?;
    let filters = params.filter.iter().flat_map(|many| &many.0).map(|text| RowFilter::parse(text));
    let filters = filters.collect::<Result<Vec<_>, _>>()?;
    let collapse = params.collapse.iter().flat_map(|many| &many.0.0).map(|text| Collapse::parse(text));
    let collapse = collapse.collect::<Result<Vec<_>, _>>()?;
    let resume = params.resumeKey.as_ref().map(|key| Resume::parse(&key.0)).transpose()?;
    let kind = match output {
        Output::Json => "application/json",
        Output::Cdxj => "text/x-cdxj; charset=utf-8",
        Output::Text => "text/plain; charset=utf-8",
    };
    let kind = HeaderValue::from_static(kind);
    stream(&state, asker, kind, Packing::TEXT, move |newest, who, out| {
        // An answer goes on in the version it began with: in another one its place would be that of other captures.
        let version = resume.as_ref().map_or(newest.version(), |resume| resume.version.as_str());
        let pinned = &newest.at(version)?;
        let dataset = params.dataset.as_deref().map(|name| pinned.dataset_id(name, who)).transpose()?;
        let query = CdxQuery {
            url,
            match_type,
            from: params.from.as_ref().and_then(Digits::from),
            to: params.to.as_ref().and_then(Digits::to),
            dataset,
        };
        let rows = pinned.cdx(&query, who)?;
        if resume.as_ref().is_some_and(|resume| resume.rows != rows.mark(resume.next.is_counted())) {
            let why = "parameter resumeKey: what may be shown has changed since the answer before";
            return Err(QueryError::Moved { why });
        }
        let pages = rows.pages();
        if params.showNumPages == Some(true) {
            return writeln!(out, "{pages}").map_err(gone);
        }
        if params.page.is_some_and(|page| u64::from(page) >= pages) {
            // Clients ask for page after page until one has no bytes at all, not even an empty list.
            return Ok(());
        }
        let mut pick = Pick::new(filters, collapse);
        if resume.as_ref().is_some_and(|resume| !pick.go_on(&resume.marks)) {
            return Err(QueryError::BadRequest {
                why: "parameter resumeKey: it is of an answer with other parameters",
            });
        }
        let mut lines = Lines::new(output, fields, out)?;
        let end = answer(&rows, &params, resume.as_ref().map(|resume| &resume.next), &mut pick, &mut lines)?;
        let end = end.filter(|_| params.showResumeKey == Some(true));
        let key = end.map(|next| {
            let (version, rows) = (pinned.version().to_owned(), rows.mark(next.is_counted()));
            Resume { version, rows, next, marks: pick.marks() }.encode()
        });
        lines.finish(key)
    })
    .await
}

/// URL and match type, with the wildcards that stand for one.
fn wanted(params: &CdxParams) -> Result<(String, MatchType), Failure> {
    let url = params.url.as_ref().map(|url| url.0.as_str()).filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| Failure::bad_request("parameter url is missing"))?;
    let asked = params.matchType.map(|asked| match asked {
        Match::Exact => MatchType::Exact,
        Match::Prefix => MatchType::Prefix,
        Match::Host => MatchType::Host,
        Match::Domain => MatchType::Domain,
    });
    Ok(match (asked, url.strip_prefix("*."), url.strip_suffix('*')) {
        (Some(asked), _, _) => (url.to_owned(), asked),
        (None, Some(domain), _) => (domain.trim_end_matches("/*").to_owned(), MatchType::Domain),
        (None, None, Some(prefix)) => (prefix.to_owned(), MatchType::Prefix),
        (None, None, None) => (url.to_owned(), MatchType::Exact),
    })
}

/// Writes the captures asked for; where it goes on, if a limit ended it.
fn answer(
    rows: &CdxRows<'_>,
    params: &CdxParams,
    from: Option<&Next>,
    pick: &mut Pick,
    lines: &mut Lines<'_, '_>,
) -> Result<Option<Next>, QueryError> {
    let limit = params.limit.unwrap_or(i64::MAX);
    // pywb and its clients (cdx_toolkit) name a time and no order.
    let implied = if params.closest.is_some() && limit >= 0 { Sort::Closest } else { Sort::Default };
    let sort = params.sort.unwrap_or(implied);
    // Nearest to no time at all: all of them, in order.
    if let (Sort::Closest, Some(wanted)) = (sort, params.closest.as_ref().and_then(Digits::from)) {
        return closest(rows, wanted, pick, limit, lines).map(|()| None);
    }
    if limit < 0 {
        return last(rows, limit.unsigned_abs(), pick, lines).map(|()| None);
    }
    let all: Vec<u64> = match params.page {
        Some(page) => vec![u64::from(page)],
        None if sort == Sort::Reverse => (0..rows.pages()).rev().collect(),
        None => (0..rows.pages()).collect(),
    };
    let mut left = limit.unsigned_abs();
    for page in all.into_iter().skip_while(|page| from.is_some_and(|from| *page != from.stretch)) {
        let mut stretch = rows.page(page)?;
        if sort == Sort::Reverse {
            stretch.to_mut().reverse();
        }
        let from = from.filter(|from| from.stretch == page);
        let start = from.map_or(0, |from| from.place(&stretch, sort == Sort::Reverse));
        for (at, row) in stretch.iter().enumerate().skip(start) {
            if left == 0 {
                return Ok(Next::of(page, &stretch, at));
            }
            if pick.takes(row) {
                left -= 1;
                lines.push(row)?;
            }
        }
    }
    Ok(None)
}

fn last(rows: &CdxRows<'_>, most: u64, pick: &mut Pick, lines: &mut Lines<'_, '_>) -> Result<(), QueryError> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(MAX_CLOSEST);
    let mut found: Vec<CdxRow> = Vec::new();
    for page in (0..rows.pages()).rev() {
        let mut stretch: Vec<CdxRow> = rows.page(page)?.into_owned();
        stretch.retain(|row| pick.takes(row));
        stretch.append(&mut found);
        found = stretch;
        if found.len() >= most {
            break;
        }
    }
    let skip = found.len().saturating_sub(most);
    found.iter().skip(skip).try_for_each(|row| lines.push(row))
}

fn closest(
    rows: &CdxRows<'_>,
    wanted: UnixMillis,
    pick: &mut Pick,
    limit: i64,
    lines: &mut Lines<'_, '_>,
) -> Result<(), QueryError> {
    // By whole seconds, as times are printed.
    let second = |ts: UnixMillis| ts.0.div_euclid(1000);
    let far = |row: &CdxRow| row.item.ts.map_or(u64::MAX, |ts| second(ts).abs_diff(second(wanted)));
    let most = usize::try_from(limit).unwrap_or(MAX_CLOSEST).min(MAX_CLOSEST);
    let mut found: Vec<CdxRow> = Vec::new();
    for page in 0..rows.pages() {
        found.extend(rows.page(page)?.into_owned().into_iter().filter(|row| pick.takes(row)));
        found.sort_by_key(far);
        found.truncate(most);
    }
    found.iter().try_for_each(|row| lines.push(row))
}

/// Writes captures.
struct Lines<'a, 'o> {
    output: Output,
    fields: Fields,
    out: &'a mut Out<'o>,
    any: bool,
}

impl<'a, 'o> Lines<'a, 'o> {
    fn new(output: Output, fields: Fields, out: &'a mut Out<'o>) -> Result<Self, QueryError> {
        Ok(Self { output, fields, out, any: false })
    }

    fn push(&mut self, row: &CdxRow) -> Result<(), QueryError> {
        let written = match self.output {
            Output::Text => writeln!(self.out, "{}", self.fields.texts(row).join(" ")),
            Output::Json => {
                let first = if self.any { String::new() } else { format!("[{}", json!(self.fields.names())) };
                write!(self.out, "{first},\n{}", json!(self.fields.texts(row)))
            }
            Output::Cdxj => {
                let time = row.item.ts.map(|ts| ts.digits14()).unwrap_or_else(|| "-".to_owned());
                writeln!(self.out, "{} {time} {}", row.urlkey, self.fields.object(row))
            }
        };
        self.any = true;
        written.map_err(gone)
    }

    fn finish(self, resume: Option<String>) -> Result<(), QueryError> {
        let written = match (self.output, resume) {
            (Output::Json, None) if self.any => writeln!(self.out, "]"),
            (Output::Json, None) => writeln!(self.out, "[]"),
            (Output::Json, Some(key)) => {
                let first = if self.any { String::new() } else { format!("[{}", json!(self.fields.names())) };
                writeln!(self.out, "{first},\n[],\n{}]", json!([key]))
            }
            (_, Some(key)) => writeln!(self.out, "\n{key}"),
            (_, None) => Ok(()),
        };
        written.map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_filled_up_to_both_ends() {
        for (digits, from, to) in [
            ("2024", "2024-01-01T00:00:00.000Z", "2024-12-31T23:59:59.999Z"),
            ("202402", "2024-02-01T00:00:00.000Z", "2024-02-29T23:59:59.999Z"),
            ("202302", "2023-02-01T00:00:00.000Z", "2023-02-28T23:59:59.999Z"),
            ("20240101120000", "2024-01-01T12:00:00.000Z", "2024-01-01T12:00:00.999Z"),
            ("2", "2000-01-01T00:00:00.000Z", "2999-12-31T23:59:59.999Z"),
        ] {
            let digits = Digits::parse(digits).unwrap();
            assert_eq!(digits.from().unwrap().to_string(), from);
            assert_eq!(digits.to().unwrap().to_string(), to);
        }
        for bad in ["", "20241301", "2024x", "202401011200000"] {
            assert_eq!(Digits::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn wildcards_are_match_types() {
        let of = |url: &str| wanted(&CdxParams { url: Some(UrlText(url.into())), ..CdxParams::default() }).unwrap();
        assert_eq!(of("example.com/a*"), ("example.com/a".into(), MatchType::Prefix));
        assert_eq!(of("*.example.com"), ("example.com".into(), MatchType::Domain));
        assert_eq!(of("*.example.com/*"), ("example.com".into(), MatchType::Domain));
        assert_eq!(of("example.com"), ("example.com".into(), MatchType::Exact));
        assert!(wanted(&CdxParams::default()).is_err());
    }
}
