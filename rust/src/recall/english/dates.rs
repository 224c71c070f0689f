//! Component `date`: how well a message's date meets the dates that the question names. English months, "7.5.2023" and
//! "2023-05-07".

use crate::recall::words::Word;

const MONTHS: [&str; 12] = [
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

/// Words before "may" that make it a month.
const BEFORE_MAY: [&str; 6] = ["in", "of", "on", "during", "since", "by"];

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Days after a day that may still speak of it, at half the value.
const AFTER: i64 = 10;

/// A date that a question names, as far as it names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recall) struct NamedDate {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
}

/// The dates that a question, in lower case, names.
pub(in crate::recall) fn named_dates(question: &[Word<'_>]) -> Vec<NamedDate> {
    let year = question.iter().find_map(|word| year(word.text));
    let mut dates = numeric_dates(question);
    dates.extend(days_of_months(question, year));
    for (place, word) in question.iter().enumerate() {
        let Some(month) = month(word.text) else {
            continue;
        };
        if dates.iter().any(|date| date.month == Some(month)) {
            continue;
        }
        let day = day_after(question, place);
        if word.text == "may"
            && day.is_none()
            && year.is_none()
            && !is_month_of_may(question, place)
        {
            continue;
        }
        dates.push(NamedDate {
            year,
            month: Some(month),
            day,
        });
    }
    if dates.is_empty() && year.is_some() {
        dates.push(NamedDate {
            year,
            month: None,
            day: None,
        });
    }
    dates
}

/// The day of a time, microseconds since 1970 in UTC: days since 1970.
pub(in crate::recall) fn day_of(time: i64) -> i64 {
    time.div_euclid(MICROS_PER_DAY)
}

/// How well a day, in days since 1970, meets the best of the dates: the day or a neighbour 1, up to ten days later 0.5;
/// the month 1, the first ten days of the next 0.5; the year alone 0.3.
pub(in crate::recall) fn closeness(dates: &[NamedDate], days: i64) -> f32 {
    let (year, month, day) = civil(days);
    let of_one = |date: &NamedDate| {
        if date.year.is_some_and(|named| named != year) {
            return 0.0;
        }
        match (date.month, date.day) {
            (None, _) => 0.3,
            (Some(named), None) => month_closeness(named, month, day),
            (Some(named), Some(on)) => days_of_civil(date.year.unwrap_or(year), named, on)
                .map_or(0.0, |named| day_closeness(days - named)),
        }
    };
    dates.iter().map(of_one).fold(0.0, f32::max)
}

fn day_closeness(days_after: i64) -> f32 {
    match days_after {
        -1..=1 => 1.0,
        2..=AFTER => 0.5,
        _ => 0.0,
    }
}

fn month_closeness(named: u32, month: u32, day: u32) -> f32 {
    if month == named {
        1.0
    } else if named % 12 + 1 == month && i64::from(day) <= AFTER {
        0.5
    } else {
        0.0
    }
}

/// "7 may", "7th of may".
fn days_of_months(question: &[Word<'_>], year: Option<i64>) -> impl Iterator<Item = NamedDate> {
    (0..question.len()).filter_map(move |place| {
        let day = day(question[place].text)?;
        let mut rest = question[place + 1..].iter();
        let next = rest.next().filter(|word| word.follows())?;
        let named = match next.text {
            "of" => rest.next().filter(|word| word.follows())?,
            _ => next,
        };
        Some(NamedDate {
            year,
            month: Some(month(named.text)?),
            day: Some(day),
        })
    })
}

/// "7.5.2023" and "2023-05-07".
fn numeric_dates(question: &[Word<'_>]) -> Vec<NamedDate> {
    let date = |words: &[Word<'_>]| {
        let [first, second, third] = words else {
            return None;
        };
        let parts = match (second.gap, third.gap) {
            (".", ".") => (third, second, first),
            ("-", "-") => (first, second, third),
            _ => return None,
        };
        Some(NamedDate {
            year: Some(year(parts.0.text)?),
            month: Some(number(parts.1.text)?),
            day: Some(number(parts.2.text)?),
        })
    };
    question.windows(3).filter_map(date).collect()
}

fn day_after(question: &[Word<'_>], place: usize) -> Option<u32> {
    let next = question.get(place + 1).filter(|word| word.follows())?;
    day(next.text)
}

fn is_month_of_may(question: &[Word<'_>], place: usize) -> bool {
    let before = place.checked_sub(1).map(|before| question[before].text);
    question[place].follows() && before.is_some_and(|word| BEFORE_MAY.contains(&word))
}

fn month(word: &str) -> Option<u32> {
    let place = MONTHS.iter().position(|month| *month == word)?;
    Some(place as u32 + 1)
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

/// Days since 1970 of a date; `None` where there is no such date. The same source, `days_from_civil`.
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
