//! Recordings as comma-separated values: one line per row, a heading of series names.

use crate::batch::Batch;
use crate::header::Header;
use crate::rates::Rates;
use numakit_model::{Kind, Series};
use std::io::{self, Write};

/// Which numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// As they were read.
    Raw,
    /// Counters per second, gauges as levels.
    Rates,
}

/// Writes rows. `time` is in ns since 1970 UTC, `took` in ns; a value that was not
/// measured is an empty field; a label is a line of its own.
pub struct Writer<'a, W> {
    to: W,
    series: &'a [Series],
    rates: Option<Rates>,
    values: Vec<Option<u64>>,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Writes the heading.
    pub fn new(mut to: W, header: &'a Header, values: Values) -> io::Result<Self> {
        write!(to, "time,took,label")?;
        for series in &header.series {
            write!(to, ",{}", quoted(&series.name()))?;
        }
        writeln!(to)?;
        let rates = (values == Values::Rates).then(|| Rates::new(&header.series));
        Ok(Self { to, series: &header.series, rates, values: vec![None; header.series.len()] })
    }

    /// Writes rows.
    pub fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        for row in 0..batch.len() {
            write!(self.to, "{},{},", batch.time[row], batch.took[row])?;
            if let Some(text) = &batch.label[row] {
                write!(self.to, "{}", quoted(text))?;
                writeln!(self.to, "{}", ",".repeat(self.series.len()))?;
                continue;
            }
            batch.row(row, &mut self.values);
            match &mut self.rates {
                None => raw(&mut self.to, self.series, &self.values)?,
                Some(rates) => {
                    for rate in rates.push(batch.time[row], &self.values) {
                        write!(self.to, ",")?;
                        if let Some(rate) = rate {
                            write!(self.to, "{rate}")?;
                        }
                    }
                }
            }
            writeln!(self.to)?;
        }
        Ok(())
    }

    /// Hands over what is still buffered.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn raw(to: &mut impl Write, series: &[Series], values: &[Option<u64>]) -> io::Result<()> {
    for (series, value) in series.iter().zip(values) {
        match value {
            None => write!(to, ",")?,
            Some(value) if series.metric.kind == Kind::Rate => write!(to, ",{}", *value as i64)?,
            Some(value) => write!(to, ",{value}")?,
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_labels_and_gaps_are_written() {
        let (header, _, _) = crate::numascope::read(br#"[["a",1,0],["x,y","z"],[1,2,3]]"#).unwrap();
        let mut batch = Batch::empty(2);
        batch.push_sample(1000, 5, &[Some(-2i64 as u64), None]);
        batch.push_label(2000, "say \"hi\"");
        for values in [Values::Raw, Values::Rates] {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, &header, values).unwrap();
            writer.batch(&batch).unwrap();
            writer.finish().unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text, "time,took,label,\"a.x,y\",a.z\n1000,5,,-2,\n2000,0,\"say \"\"hi\"\"\",,\n");
        }
    }
}
