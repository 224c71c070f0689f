//! Component `date`: how well a message's date meets the dates that the question names. English months, "7.5.2023",
//! "2023-05-07" and "7/5/2023".

use crate::text::words::Word;

pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// How many letters a month is cut to; "sept" is usual, too.
const CUT: usize = 3;

/// Words before "may" that make it a month.
const BEFORE_MAY: [&str; 6] = ["in", "of", "on", "during", "since", "by"];

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Days after a day that may still speak of it, at half the value.
const AFTER: i64 = 10;

/// A date that a question names, as far as it names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedDate {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
}

/// The dates that a question, in lower case, names.
pub(crate) fn named_dates(question: &[Word<'_>]) -> Vec<NamedDate> {
    let years = question.iter().any(|word| year(word.text).is_some());
    let mut dates = numeric_dates(question);
    dates.extend(days_of_months(question));
    for (index, word) in question.iter().enumerate() {
        let Some(month) = month_at(question, index) else {
            continue;
        };
        let date = NamedDate {
            year: year_of(question, index),
            month: Some(month),
            day: day_after(question, index),
        };
        let is_verb = word.text == "may" && date.day.is_none() && !years;
        if is_verb && !is_month_of_may(question, index) {
            continue;
        }
        if !dates.iter().any(|other| date.is_said_by(other)) {
            dates.push(date);
        }
    }
    if dates.is_empty() {
        let years = question.iter().filter_map(|word| year(word.text));
        dates.extend(years.map(NamedDate::of_year));
    }
    dates
}

impl NamedDate {
    fn of_year(year: i64) -> Self {
        Self {
            year: Some(year),
            month: None,
            day: None,
        }
    }

    /// Whether another date of the same month says as much.
    fn is_said_by(&self, other: &Self) -> bool {
        (self.year, self.month) == (other.year, other.month)
            && (self.day.is_none() || self.day == other.day)
    }
}

/// The day of a time, microseconds since 1970 in UTC: days since 1970.
pub(crate) fn day_of(time: i64) -> i64 {
    time.div_euclid(MICROS_PER_DAY)
}

/// How well a day, in days since 1970, meets the best of the dates: the day or a neighbour 1, up to ten days later 0.5;
/// the month 1, the first ten days of the next 0.5; the year alone 0.3.
pub(crate) fn closeness(dates: &[NamedDate], days: i64) -> f32 {
    let (year, ..) = civil(days);
    let of_one = |date: &NamedDate| {
        // One without a year may be of the year before or after, where the message is from its beginning or end.
        let years = date.year.map_or(year - 1..=year + 1, |year| year..=year);
        years
            .map(|named| closeness_in(date, named, days))
            .fold(0.0, f32::max)
    };
    dates.iter().map(of_one).fold(0.0, f32::max)
}

/// The closeness of a day to one date, which is in this year.
fn closeness_in(date: &NamedDate, year: i64, days: i64) -> f32 {
    let first_of = |month| match month {
        13 => days_of_civil(year + 1, 1, 1),
        _ => days_of_civil(year, month, 1),
    };
    match (date.month, date.day) {
        (None, _) if civil(days).0 == year => 0.3,
        (None, _) => 0.0,
        (Some(month), None) => match (first_of(month), first_of(month + 1)) {
            (Some(begin), Some(end)) => month_closeness(begin, end, days),
            _ => 0.0,
        },
        (Some(month), Some(day)) => {
            days_of_civil(year, month, day).map_or(0.0, |named| day_closeness(days - named))
        }
    }
}

fn day_closeness(days_after: i64) -> f32 {
    match days_after {
        -1..=1 => 1.0,
        2..=AFTER => 0.5,
        _ => 0.0,
    }
}

/// Of a month from its first day up to that of the next.
fn month_closeness(begin: i64, end: i64, days: i64) -> f32 {
    if (begin..end).contains(&days) {
        1.0
    } else if (end..end + AFTER).contains(&days) {
        0.5
    } else {
        0.0
    }
}

/// "7 may", "7th of may".
fn days_of_months(question: &[Word<'_>]) -> impl Iterator<Item = NamedDate> {
    (0..question.len()).filter_map(|index| {
        let day = day(question[index].text)?;
        let next = question.get(index + 1).filter(|word| word.follows())?;
        let named = match next.text {
            "of" => index + 2,
            _ => index + 1,
        };
        let word = question.get(named).filter(|word| word.follows())?;
        Some(NamedDate {
            year: year_of(question, named),
            month: Some(month(word.text).or_else(|| cut_month(word.text))?),
            day: Some(day),
        })
    })
}

/// "7.5.2023", "2023-05-07"; "7/5/2023" in both orders, because it is written in both.
fn numeric_dates(question: &[Word<'_>]) -> Vec<NamedDate> {
    let date = |year: &Word<'_>, month: &Word<'_>, day: &Word<'_>| {
        Some(NamedDate {
            year: Some(self::year(year.text)?),
            month: Some(number(month.text)?),
            day: Some(number(day.text)?),
        })
    };
    let written = |words: &[Word<'_>]| match words {
        [first, second, third] => match (second.gap, third.gap) {
            (".", ".") => [date(third, second, first), None],
            ("-", "-") => [date(first, second, third), None],
            ("/", "/") => [date(third, second, first), date(third, first, second)],
            _ => [None, None],
        },
        _ => [None, None],
    };
    question.windows(3).flat_map(written).flatten().collect()
}

/// The month that a word is: in full, or cut where a day or a year comes after it.
fn month_at(question: &[Word<'_>], index: usize) -> Option<u32> {
    let word = question[index].text;
    let numbered = || {
        let next = word_after(question, index)?;
        let is_number = day(next).is_some() || year(next).is_some();
        is_number.then(|| cut_month(word))?
    };
    month(word).or_else(numbered)
}

/// The year of the month at an index: the one that comes next, a day between them or not, or else the question's first.
fn year_of(question: &[Word<'_>], index: usize) -> Option<i64> {
    let year_at = |index: usize| year(question.get(index)?.text);
    let behind_day = || day_after(question, index).and_then(|_| year_at(index + 2));
    let first = || question.iter().find_map(|word| year(word.text));
    year_at(index + 1).or_else(behind_day).or_else(first)
}

fn day_after(question: &[Word<'_>], index: usize) -> Option<u32> {
    day(word_after(question, index)?)
}

/// The word behind the one at an index, which may end in a period: it may be cut.
fn word_after<'a>(question: &[Word<'a>], index: usize) -> Option<&'a str> {
    let next = question.get(index + 1)?;
    [" ", ". "].contains(&next.gap).then_some(next.text)
}

fn is_month_of_may(question: &[Word<'_>], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| question[before].text);
    question[index].follows() && before.is_some_and(|word| BEFORE_MAY.contains(&word))
}

fn month(word: &str) -> Option<u32> {
    let index = MONTHS.iter().position(|month| *month == word)?;
    Some(index as u32 + 1)
}

fn cut_month(word: &str) -> Option<u32> {
    let is_cut = word.len() == CUT || word == "sept";
    let index = MONTHS
        .iter()
        .position(|month| is_cut && month.starts_with(word))?;
    Some(index as u32 + 1)
}

/// A year from 2000 to 2099.
fn year(word: &str) -> Option<i64> {
    (word.len() == 4 && word.starts_with("20"))
        .then(|| word.parse().ok())
        .flatten()
}

/// A day of a month: "7", "7th".
fn day(word: &str) -> Option<u32> {
    let suffixes = ["st", "nd", "rd", "th"];
    let bare = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix));
    number(bare.unwrap_or(word))
}

/// A number of one or two digits.
fn number(word: &str) -> Option<u32> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    (digits && word.len() <= 2)
        .then(|| word.parse().ok())
        .flatten()
}

/// Year, month and day of a day since 1970. Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`.
fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = (if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    }) as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970 of a date; `None` if there is no such date. The same source, `days_from_civil`.
fn days_of_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    let shifted_year = year - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}
