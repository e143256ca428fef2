//! Rows of a file as JSON lines: all of them, or those that a question is about, without reading the rest.

use crate::json;
use crate::keys::parse_host;
use crate::reader::{DueRow, FEW, MeguriFile, Row};
use crate::schema::{STATUS_NAMES, UrlRecord};
use crate::seed::hour_of;
use std::io::{self, Write};
use trawl_model::{Advice, DoorError, OnDamage, Wanted};
use trawl_url::SuffixList;

/// Due rows whose texts are read at a time.
const BATCH: usize = 256;

/// Prints the rows that are wanted, as JSON however they are asked for, and says how many. An offset is a row's number. A row
/// whose key is not the one of its URL is left out and told to `on_damage`.
pub(crate) fn list(
    file: &MeguriFile,
    wanted: &Wanted<'_>,
    out: &mut dyn Write,
    on_damage: OnDamage<'_>,
) -> Result<u64, DoorError> {
    let refuse = |why: String| DoorError::new(Advice::Stop, why);
    let status = wanted.rows.status.map(Status::parse).transpose().map_err(refuse)?;
    let host = wanted.rows.host.map(parse_host).transpose().map_err(refuse)?;
    let due = wanted.rows.due_before.map(hour_of);
    let fits = |record: &UrlRecord| {
        status.is_none_or(|status| status.is_of(record))
            && host.is_none_or(|host| host == record.host_key)
            && due.is_none_or(|hour| (1..=hour).contains(&record.next_due))
    };
    // Many due rows lie all over the table: one walk over it finds them sooner.
    let few_due = match due {
        Some(hour) => (file.due_candidates(hour)? <= FEW).then_some(hour),
        None => None,
    };
    let mut print = Printer { file, out, on_damage, printed: 0 };
    if let Some(url) = wanted.url {
        let mut numbers = Vec::new();
        for key in file.key_policy().candidates(url, SuffixList::builtin()) {
            numbers.extend(file.find(key)?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        print.rows(file.read_rows(&numbers)?, &fits)?;
    } else if let Some(number) = wanted.offset {
        let numbers: Vec<u64> = (number < file.header().url_count).then_some(number).into_iter().collect();
        print.rows(file.read_rows(&numbers)?, &fits)?;
    } else if let Some(hour) = few_due {
        print.due(hour, host, &fits)?;
    } else {
        let rows = host.map_or(Ok(0..file.header().url_count), |host| file.rows_of_host(host))?;
        let mut cursor = file.cursor_over(rows)?;
        while cursor.advance()? {
            // Texts of other rows need not be unpacked.
            if cursor.record().is_some_and(&fits)
                && let Some(row) = cursor.owned_row()?
            {
                print.row(&row)?;
            }
        }
    }
    Ok(print.printed)
}

struct Printer<'a> {
    file: &'a MeguriFile,
    out: &'a mut dyn Write,
    on_damage: OnDamage<'a>,
    printed: u64,
}

impl Printer<'_> {
    fn row(&mut self, row: &Row) -> Result<(), DoorError> {
        if let Some(fault) = self.file.key_fault(row.number, row.key(), &row.url) {
            (self.on_damage)(DoorError::new(Advice::Skip, fault));
            return Ok(());
        }
        serde_json::to_writer(&mut *self.out, &json::row(row)).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        self.printed += 1;
        Ok(())
    }

    fn rows(&mut self, rows: Vec<Row>, fits: &dyn Fn(&UrlRecord) -> bool) -> Result<(), DoorError> {
        rows.iter().filter(|row| fits(&row.record)).try_for_each(|row| self.row(row))
    }

    /// Through the schedule index, in the order of the table.
    fn due(&mut self, hour: u32, host: Option<u64>, fits: &dyn Fn(&UrlRecord) -> bool) -> Result<(), DoorError> {
        let mut due: Vec<DueRow> = Vec::new();
        let file = self.file;
        file.due(hour, host.map_or((0, u64::MAX), |host| (host, host)), &mut |row| {
            due.push(row);
            Ok(true)
        })?;
        due.sort_unstable_by_key(|due| due.row);
        for batch in due.chunks(BATCH) {
            let numbers: Vec<u64> = batch.iter().map(|due| due.row).collect();
            let rows = file.read_rows(&numbers)?;
            batch.iter().zip(&rows).try_for_each(|(due, row)| file.check_due(due, row.record.next_due))?;
            self.rows(rows, fits)?;
        }
        Ok(())
    }
}

/// A state of a row, or the status of its last fetch.
#[derive(Debug, Clone, Copy)]
enum Status {
    State(u8),
    Http(u16),
}

impl Status {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(state) = (0..).zip(STATUS_NAMES).find(|(_, name)| *name == text) {
            return Ok(Status::State(state.0));
        }
        let wrong = || format!("status: expected {} or an HTTP status, found {text:?}", STATUS_NAMES.join(", "));
        text.parse().ok().filter(|status| (100..1000).contains(status)).map(Status::Http).ok_or_else(wrong)
    }

    fn is_of(self, record: &UrlRecord) -> bool {
        match self {
            Status::State(state) => record.status == state,
            Status::Http(status) => record.http_status == status,
        }
    }
}
