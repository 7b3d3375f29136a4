//! `strftime_now` without the C library: it must not depend on a locale.

use minijinja::{Error, ErrorKind};

/// A moment, and how far the local time is from UTC.
#[derive(Clone, Copy)]
pub struct Clock {
    pub unix_s: i64,
    pub utc_offset_s: i32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Gregorian date and time of day; months and days count from one, weekdays from Monday = 0.
struct Civil {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    year_day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Clock {
    /// Python's `datetime.now().strftime(format)`; an unknown directive is an error, not text.
    pub fn strftime(self, format: &str) -> Result<String, Error> {
        let now = Civil::at(self.unix_s.saturating_add(i64::from(self.utc_offset_s)));
        let mut out = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut directive = rest.next();
            let unpadded = directive == Some('-');
            if unpadded {
                directive = rest.next();
            }
            let text = directive.and_then(|d| now.directive(d)).ok_or_else(|| {
                Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know all of {format:?}"))
            })?;
            out += if unpadded { without_padding(&text) } else { &text };
        }
        Ok(out)
    }
}

fn without_padding(text: &str) -> &str {
    match text.trim_start_matches(['0', ' ']) {
        "" => "0",
        rest => rest,
    }
}

impl Civil {
    /// Days to date after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    fn at(unix_s: i64) -> Self {
        let days = unix_s.div_euclid(86_400);
        let of_day = unix_s.rem_euclid(86_400);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let march_day = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * march_day + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let year_day = if month > 2 { march_day + 60 + i64::from(leap) } else { march_day - 305 };
        Civil {
            year,
            month: month as usize,
            day: march_day - (153 * march_month + 2) / 5 + 1,
            weekday: (days + 3).rem_euclid(7) as usize,
            year_day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    fn directive(&self, directive: char) -> Option<String> {
        let hour12 = (self.hour + 11) % 12 + 1;
        let short = |name: &str| name[..3].to_owned();
        Some(match directive {
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year.rem_euclid(100)),
            'm' => format!("{:02}", self.month),
            'B' => MONTHS[self.month - 1].to_owned(),
            'b' | 'h' => short(MONTHS[self.month - 1]),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'j' => format!("{:03}", self.year_day),
            'A' => DAYS[self.weekday].to_owned(),
            'a' => short(DAYS[self.weekday]),
            'u' => (self.weekday + 1).to_string(),
            'w' => ((self.weekday + 1) % 7).to_string(),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{hour12:02}"),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'M' => format!("{:02}", self.minute),
            'S' => format!("{:02}", self.second),
            'f' => "000000".to_owned(),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'T' | 'X' => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            'D' | 'x' => format!("{:02}/{:02}/{:02}", self.month, self.day, self.year.rem_euclid(100)),
            'R' => format!("{:02}:{:02}", self.hour, self.minute),
            'Z' | 'z' => String::new(), // transformers' clock has no zone
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let show = |unix_s, format: &str| Clock { unix_s, utc_offset_s: 0 }.strftime(format).unwrap();
        assert_eq!(show(0, "%A %d %B %Y %H:%M:%S %j"), "Thursday 01 January 1970 00:00:00 001");
        assert_eq!(show(1_709_164_800, "%d %b %Y %j %a"), "29 Feb 2024 060 Thu");
        assert_eq!(show(1_735_603_199, "%Y-%m-%d %I %p %j"), "2024-12-30 11 PM 365");
        assert_eq!(show(951_782_400, "%-d/%-m/%y"), "29/2/00");
        assert_eq!(show(-1, "%F %T"), "1969-12-31 23:59:59");
        assert!(Clock { unix_s: 0, utc_offset_s: 0 }.strftime("%Q").is_err());
        assert!(Clock { unix_s: 0, utc_offset_s: 0 }.strftime("%").is_err());
    }
}
